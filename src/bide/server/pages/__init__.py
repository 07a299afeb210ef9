"""The inbox in a browser: pages made on the server, that work without JavaScript and are live with it."""
