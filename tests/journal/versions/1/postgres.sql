SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA habilis;
CREATE TABLE habilis.about (
    version bigint NOT NULL
);
CREATE TABLE habilis.blobs (
    run text NOT NULL,
    digest text NOT NULL,
    data bytea NOT NULL
);
CREATE TABLE habilis.lines (
    run text NOT NULL,
    seq bigint NOT NULL,
    line text NOT NULL
);
CREATE TABLE habilis.runs (
    run text NOT NULL,
    info text NOT NULL,
    of_user text NOT NULL,
    of_session text NOT NULL,
    status text NOT NULL,
    last bigint DEFAULT 0 NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    owner text DEFAULT ''::text NOT NULL,
    claimed double precision DEFAULT 0 NOT NULL,
    until double precision DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');
INSERT INTO habilis.about VALUES (1);
INSERT INTO habilis.blobs VALUES ('run-old', '785b0751fc2c53dc14a4ce3d800e69ef9ce1009eb327ccf458afe09c242c26c9', '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff');
INSERT INTO habilis.blobs VALUES ('run-old', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', '\x');
INSERT INTO habilis.lines VALUES ('run-old', 1, '973660e1 {"v":1,"n":1,"p":"","k":"opened","t":1700000000.0,"f":"k","d":{"a":[1,-2.5,null,true,"\u0000\udcff"]}}');
INSERT INTO habilis.lines VALUES ('run-old', 2, '23846e3d {"v":1,"n":2,"p":"order#1/~1/pay#1","k":"done","t":1700000000.125,"b":"785b0751fc2c53dc14a4ce3d800e69ef9ce1009eb327ccf458afe09c242c26c9"}');
INSERT INTO habilis.lines VALUES ('run-old', 3, '5b70bee7 {"v":1,"n":3,"p":"order#1","k":"asked","t":1700000001.0,"a":{"state":"785b0751fc2c53dc14a4ce3d800e69ef9ce1009eb327ccf458afe09c242c26c9"}}');
INSERT INTO habilis.lines VALUES ('run-old', 4, 'b570f1bf {"v":1,"n":4,"p":"","k":"noted","t":0.0,"d":1180591620717411303424}');
INSERT INTO habilis.runs VALUES ('a/\u00fc\u0000\"\\nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"42aeebe966d6e66313253a9c550c216264144857d906b9f5b8430642aed1d81c', '{"run":"a/\u00fc\u0000\"\\nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn","kind":"agent","user":"o\u0000\"\\","v":1,"status":"queued","created":1600000000.0,"updated":0.0}', 'o\u0000\"\\', '', 'queued', 0, 2, 'o\u0000\"\\\u00fc', 1794732845.824834, 0);
INSERT INTO habilis.runs VALUES ('run-old', '{"run":"run-old","kind":"flow","name":"shop:order","title":"na\u00efve \u65e5\u672c\u8a9e \ud83e\uddea \u0000 \udcff","user":"ada","session":"s-1","parent":"run-0","error":"no","v":1,"status":"waiting","created":1700000000.25,"updated":1700000001.5}', 'ada', 's-1', 'waiting', 4, 2, 'o\u0000\"\\\u00fc', 1794732845.840475, 0);
ALTER TABLE ONLY habilis.blobs
    ADD CONSTRAINT blobs_pkey PRIMARY KEY (run, digest);
ALTER TABLE ONLY habilis.lines
    ADD CONSTRAINT lines_pkey PRIMARY KEY (run, seq);
ALTER TABLE ONLY habilis.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run);
CREATE INDEX runs_of_session ON habilis.runs USING btree (of_session);
CREATE INDEX runs_of_user ON habilis.runs USING btree (of_user);
