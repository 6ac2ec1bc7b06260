DROP TABLE network_notifications;
DROP TABLE disputes;
