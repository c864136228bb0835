-- The tables of arena 0.1.0 (schema 0017), for SQLite.
CREATE TABLE voter (
    id VARCHAR NOT NULL, kind VARCHAR NOT NULL, consent_version VARCHAR, person VARCHAR,
    created DATETIME NOT NULL,
    CONSTRAINT pk_voter PRIMARY KEY (id)
);
CREATE INDEX ix_voter_person ON voter (person);
CREATE TABLE person (
    voter_id VARCHAR NOT NULL, issuer VARCHAR NOT NULL, subject VARCHAR NOT NULL,
    name VARCHAR NOT NULL, role VARCHAR NOT NULL, sessions INTEGER NOT NULL,
    blocked BOOLEAN NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_person PRIMARY KEY (voter_id),
    CONSTRAINT uq_person_issuer UNIQUE (issuer, subject),
    CONSTRAINT fk_person_voter_id_voter FOREIGN KEY (voter_id) REFERENCES voter (id)
);
CREATE TABLE invitation (
    id INTEGER NOT NULL, token_hash VARCHAR NOT NULL, role VARCHAR NOT NULL, name VARCHAR NOT NULL,
    person VARCHAR, uses INTEGER NOT NULL, used INTEGER NOT NULL, expires DATETIME NOT NULL,
    created DATETIME NOT NULL,
    CONSTRAINT pk_invitation PRIMARY KEY (id),
    CONSTRAINT uq_invitation_token_hash UNIQUE (token_hash),
    CONSTRAINT fk_invitation_person_person FOREIGN KEY (person) REFERENCES person (voter_id)
);
CREATE TABLE act (
    id INTEGER NOT NULL, "by" VARCHAR NOT NULL, act VARCHAR NOT NULL, subject VARCHAR NOT NULL,
    detail JSON NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_act PRIMARY KEY (id)
);
CREATE TABLE model (
    id VARCHAR NOT NULL, name VARCHAR NOT NULL, organisation VARCHAR NOT NULL,
    kind VARCHAR NOT NULL, licence VARCHAR NOT NULL, fingerprint VARCHAR NOT NULL,
    created DATETIME NOT NULL,
    CONSTRAINT pk_model PRIMARY KEY (id)
);
CREATE TABLE model_event (
    id INTEGER NOT NULL, model_id VARCHAR NOT NULL, event VARCHAR NOT NULL,
    reason VARCHAR NOT NULL, detail JSON NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_model_event PRIMARY KEY (id),
    CONSTRAINT fk_model_event_model_id_model FOREIGN KEY (model_id) REFERENCES model (id)
);
CREATE INDEX ix_model_event_model_id ON model_event (model_id);
CREATE TABLE roster_entry (
    model_id VARCHAR NOT NULL, place INTEGER NOT NULL, entry JSON NOT NULL,
    standing VARCHAR NOT NULL, weight FLOAT NOT NULL, updated DATETIME NOT NULL, release VARCHAR,
    released DATETIME, secret VARCHAR,
    CONSTRAINT pk_roster_entry PRIMARY KEY (model_id),
    CONSTRAINT fk_roster_entry_model_id_model FOREIGN KEY (model_id) REFERENCES model (id)
);
CREATE TABLE roster_version (
    id INTEGER NOT NULL, version INTEGER NOT NULL,
    CONSTRAINT pk_roster_version PRIMARY KEY (id)
);
CREATE TABLE battle (
    id INTEGER NOT NULL, public_id VARCHAR NOT NULL, owner VARCHAR NOT NULL, mode VARCHAR NOT NULL,
    model_a VARCHAR NOT NULL, model_b VARCHAR NOT NULL, side_seed INTEGER NOT NULL,
    sampler VARCHAR NOT NULL, sampler_version VARCHAR NOT NULL, pair_probability FLOAT NOT NULL,
    repicks INTEGER DEFAULT '0' NOT NULL, continues INTEGER, prompt_set VARCHAR, prompt_id VARCHAR,
    system_prompt_hash_a VARCHAR NOT NULL, system_prompt_hash_b VARCHAR NOT NULL,
    pacing VARCHAR NOT NULL, state VARCHAR NOT NULL, process BIGINT, message VARCHAR,
    created DATETIME NOT NULL, ready DATETIME, app_version VARCHAR NOT NULL, hidden DATETIME,
    erased DATETIME,
    CONSTRAINT pk_battle PRIMARY KEY (id), CONSTRAINT uq_battle_public_id UNIQUE (public_id),
    CONSTRAINT fk_battle_owner_voter FOREIGN KEY (owner) REFERENCES voter (id),
    CONSTRAINT fk_battle_model_a_model FOREIGN KEY (model_a) REFERENCES model (id),
    CONSTRAINT fk_battle_model_b_model FOREIGN KEY (model_b) REFERENCES model (id),
    CONSTRAINT battle_continues_fkey FOREIGN KEY (continues) REFERENCES battle (id)
);
CREATE INDEX ix_battle_owner ON battle (owner);
CREATE INDEX ix_battle_state ON battle (state);
CREATE TABLE turn (
    id INTEGER NOT NULL, battle_id INTEGER NOT NULL, turn INTEGER NOT NULL,
    prompt VARCHAR NOT NULL, nonce VARCHAR, text_hash VARCHAR, scrubbed INTEGER,
    created DATETIME NOT NULL,
    CONSTRAINT pk_turn PRIMARY KEY (id), CONSTRAINT uq_turn_battle_id UNIQUE (battle_id, turn),
    CONSTRAINT fk_turn_battle_id_battle FOREIGN KEY (battle_id) REFERENCES battle (id)
);
CREATE TABLE prompt_label (
    id INTEGER NOT NULL, turn_id INTEGER NOT NULL, facet VARCHAR NOT NULL, value VARCHAR NOT NULL,
    score FLOAT, tagger VARCHAR NOT NULL, tagger_version VARCHAR NOT NULL,
    created DATETIME NOT NULL,
    CONSTRAINT pk_prompt_label PRIMARY KEY (id),
    CONSTRAINT uq_prompt_label_turn_id UNIQUE (turn_id, tagger, tagger_version, facet),
    CONSTRAINT fk_prompt_label_turn_id_turn FOREIGN KEY (turn_id) REFERENCES turn (id)
);
CREATE TABLE topic_release (
    id INTEGER NOT NULL, private BOOLEAN NOT NULL, number INTEGER NOT NULL, shown JSON NOT NULL,
    until INTEGER NOT NULL, counts JSON NOT NULL, waiting JSON NOT NULL, topics BLOB,
    created DATETIME NOT NULL,
    CONSTRAINT pk_topic_release PRIMARY KEY (id),
    CONSTRAINT uq_topic_release_private UNIQUE (private, number)
);
CREATE TABLE answer (
    id INTEGER NOT NULL, battle_id INTEGER NOT NULL, model_id VARCHAR NOT NULL,
    turn INTEGER NOT NULL, side VARCHAR NOT NULL, attempt INTEGER NOT NULL, text VARCHAR NOT NULL,
    nonce VARCHAR, text_hash VARCHAR, reasoning VARCHAR NOT NULL, status VARCHAR NOT NULL,
    error_class VARCHAR, error_detail VARCHAR, finish_reason VARCHAR, first_token_s FLOAT,
    duration_s FLOAT, tokens_in INTEGER, tokens_out INTEGER, price_input FLOAT, price_output FLOAT,
    price_date DATE, cost FLOAT, decoding JSON NOT NULL, request_id VARCHAR, needs JSON,
    erased_chars INTEGER, measured JSON, created DATETIME NOT NULL,
    CONSTRAINT pk_answer PRIMARY KEY (id),
    CONSTRAINT uq_answer_battle_id UNIQUE (battle_id, turn, side, attempt),
    CONSTRAINT fk_answer_battle_id_battle FOREIGN KEY (battle_id) REFERENCES battle (id),
    CONSTRAINT fk_answer_model_id_model FOREIGN KEY (model_id) REFERENCES model (id)
);
CREATE INDEX ix_answer_created ON answer (created);
CREATE INDEX ix_answer_model_id ON answer (model_id);
CREATE TABLE vote (
    id INTEGER NOT NULL, battle_id INTEGER NOT NULL, voter_id VARCHAR NOT NULL,
    turn INTEGER NOT NULL, attempt_a INTEGER NOT NULL, attempt_b INTEGER NOT NULL,
    outcome VARCHAR NOT NULL, key VARCHAR NOT NULL, order_shown VARCHAR NOT NULL,
    seconds_to_vote FLOAT NOT NULL, tags_a JSON NOT NULL, tags_b JSON NOT NULL,
    comment_a VARCHAR NOT NULL, comment_b VARCHAR NOT NULL, fingerprint_a VARCHAR,
    fingerprint_b VARCHAR, created DATETIME NOT NULL, link INTEGER, content VARCHAR,
    previous_hash VARCHAR NOT NULL, hash VARCHAR NOT NULL, transcript_hash VARCHAR,
    CONSTRAINT pk_vote PRIMARY KEY (id), CONSTRAINT uq_vote_battle_id UNIQUE (battle_id),
    CONSTRAINT fk_vote_battle_id_battle FOREIGN KEY (battle_id) REFERENCES battle (id),
    CONSTRAINT fk_vote_voter_id_voter FOREIGN KEY (voter_id) REFERENCES voter (id),
    CONSTRAINT uq_vote_hash UNIQUE (hash)
);
CREATE INDEX ix_vote_voter_id ON vote (voter_id);
CREATE UNIQUE INDEX ix_vote_link ON vote (link);
CREATE INDEX ix_vote_created ON vote (created);
CREATE TABLE vote_remark (
    vote_id INTEGER NOT NULL, reasons_a JSON NOT NULL, reasons_b JSON NOT NULL,
    comment VARCHAR NOT NULL, confidence INTEGER, intent VARCHAR, before_reveal BOOLEAN NOT NULL,
    updated DATETIME,
    CONSTRAINT pk_vote_remark PRIMARY KEY (vote_id),
    CONSTRAINT fk_vote_remark_vote_id_vote FOREIGN KEY (vote_id) REFERENCES vote (id)
);
CREATE TABLE vote_chain (
    id INTEGER NOT NULL, head VARCHAR NOT NULL, links INTEGER DEFAULT '0' NOT NULL,
    imported INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT pk_vote_chain PRIMARY KEY (id)
);
CREATE TABLE chain_link (
    link INTEGER NOT NULL, kind VARCHAR NOT NULL, reason VARCHAR NOT NULL, bound JSON,
    content VARCHAR NOT NULL, previous_hash VARCHAR NOT NULL, hash VARCHAR NOT NULL,
    CONSTRAINT pk_chain_link PRIMARY KEY (link)
);
CREATE TABLE chain_mark (
    link INTEGER NOT NULL, content VARCHAR NOT NULL, previous_hash VARCHAR NOT NULL,
    hash VARCHAR NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_chain_mark PRIMARY KEY (link)
);
CREATE TABLE flag (
    id INTEGER NOT NULL, battle_id INTEGER, voter_id VARCHAR, rule VARCHAR NOT NULL,
    version VARCHAR NOT NULL, score FLOAT, reason VARCHAR NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_flag PRIMARY KEY (id),
    CONSTRAINT fk_flag_battle_id_battle FOREIGN KEY (battle_id) REFERENCES battle (id),
    CONSTRAINT fk_flag_voter_id_voter FOREIGN KEY (voter_id) REFERENCES voter (id)
);
CREATE INDEX ix_flag_voter_id ON flag (voter_id);
CREATE INDEX ix_flag_battle_id ON flag (battle_id);
CREATE TABLE exclusion (
    id INTEGER NOT NULL, vote_id INTEGER NOT NULL, policy VARCHAR NOT NULL, rule VARCHAR NOT NULL,
    version VARCHAR NOT NULL, reason VARCHAR NOT NULL, created DATETIME NOT NULL, link INTEGER,
    content VARCHAR, previous_hash VARCHAR, hash VARCHAR,
    CONSTRAINT pk_exclusion PRIMARY KEY (id),
    CONSTRAINT fk_exclusion_vote_id_vote FOREIGN KEY (vote_id) REFERENCES vote (id)
);
CREATE INDEX ix_exclusion_vote_id ON exclusion (vote_id);
CREATE UNIQUE INDEX ix_exclusion_link ON exclusion (link);
CREATE TABLE vote_block (
    last INTEGER NOT NULL, hash VARCHAR NOT NULL, names JSON NOT NULL, votes BLOB NOT NULL,
    CONSTRAINT pk_vote_block PRIMARY KEY (last)
);
CREATE TABLE board (
    policy VARCHAR NOT NULL, version VARCHAR NOT NULL, board VARCHAR NOT NULL,
    took_s FLOAT NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_board PRIMARY KEY (policy)
);
CREATE TABLE rating_run (
    id INTEGER NOT NULL, policy VARCHAR NOT NULL, method JSON NOT NULL,
    code_version VARCHAR NOT NULL, head VARCHAR NOT NULL, votes INTEGER NOT NULL,
    created DATETIME NOT NULL,
    CONSTRAINT pk_rating_run PRIMARY KEY (id)
);
CREATE INDEX ix_rating_run_head ON rating_run (head);
CREATE TABLE rating (
    id INTEGER NOT NULL, run_id INTEGER NOT NULL, model_id VARCHAR NOT NULL, rating FLOAT NOT NULL,
    se FLOAT NOT NULL, lower FLOAT NOT NULL, upper FLOAT NOT NULL, rank INTEGER NOT NULL,
    rank_low INTEGER NOT NULL, rank_high INTEGER NOT NULL, votes INTEGER NOT NULL,
    CONSTRAINT pk_rating PRIMARY KEY (id),
    CONSTRAINT fk_rating_run_id_rating_run FOREIGN KEY (run_id) REFERENCES rating_run (id),
    CONSTRAINT fk_rating_model_id_model FOREIGN KEY (model_id) REFERENCES model (id)
);
CREATE INDEX ix_rating_run_id ON rating (run_id);
CREATE TABLE endpoint_lesson (
    endpoint VARCHAR NOT NULL, name VARCHAR NOT NULL, sentence VARCHAR NOT NULL,
    created DATETIME NOT NULL,
    CONSTRAINT pk_endpoint_lesson PRIMARY KEY (endpoint, name)
);
CREATE TABLE judgement (
    hash VARCHAR NOT NULL, judge VARCHAR NOT NULL, request JSON NOT NULL, response JSON NOT NULL,
    cost FLOAT, duration_s FLOAT, created DATETIME NOT NULL,
    CONSTRAINT pk_judgement PRIMARY KEY (hash)
);
CREATE INDEX ix_judgement_judge ON judgement (judge);
CREATE TABLE verdict (
    id INTEGER NOT NULL, judgement_hash VARCHAR NOT NULL, parser_version VARCHAR NOT NULL,
    outcome VARCHAR, detail JSON NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_verdict PRIMARY KEY (id),
    CONSTRAINT uq_verdict_judgement_hash UNIQUE (judgement_hash, parser_version),
    CONSTRAINT fk_verdict_judgement_hash_judgement FOREIGN KEY (judgement_hash)
        REFERENCES judgement (hash)
);
CREATE TABLE judgement_claim (
    hash VARCHAR NOT NULL, process BIGINT NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_judgement_claim PRIMARY KEY (hash)
);
CREATE TABLE judging_seed (
    id INTEGER NOT NULL, seed VARCHAR NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_judging_seed PRIMARY KEY (id)
);
CREATE TABLE prompt_secret (
    id INTEGER NOT NULL, secret VARCHAR NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_prompt_secret PRIMARY KEY (id)
);
CREATE TABLE study (
    id INTEGER NOT NULL, name VARCHAR NOT NULL, plan JSON NOT NULL, guidelines VARCHAR NOT NULL,
    opened BOOLEAN NOT NULL, seed VARCHAR NOT NULL, created DATETIME NOT NULL,
    CONSTRAINT pk_study PRIMARY KEY (id), CONSTRAINT uq_study_name UNIQUE (name)
);
CREATE TABLE study_item (
    id INTEGER NOT NULL, study_id INTEGER NOT NULL, item VARCHAR NOT NULL, kind VARCHAR NOT NULL,
    prompt_id VARCHAR, messages JSON NOT NULL, responses JSON NOT NULL, gold VARCHAR,
    CONSTRAINT pk_study_item PRIMARY KEY (id),
    CONSTRAINT uq_study_item_study_id UNIQUE (study_id, item),
    CONSTRAINT fk_study_item_study_id_study FOREIGN KEY (study_id) REFERENCES study (id)
);
CREATE TABLE study_rater (
    id INTEGER NOT NULL, study_id INTEGER NOT NULL, voter_id VARCHAR, number INTEGER,
    qualification FLOAT, passed BOOLEAN, looked DATETIME, created DATETIME NOT NULL,
    CONSTRAINT pk_study_rater PRIMARY KEY (id),
    CONSTRAINT uq_study_rater_study_id UNIQUE (study_id, voter_id),
    CONSTRAINT fk_study_rater_study_id_study FOREIGN KEY (study_id) REFERENCES study (id),
    CONSTRAINT fk_study_rater_voter_id_voter FOREIGN KEY (voter_id) REFERENCES voter (id)
);
CREATE INDEX ix_study_rater_voter_id ON study_rater (voter_id);
CREATE TABLE study_assignment (
    id INTEGER NOT NULL, item_id INTEGER NOT NULL, rater_id INTEGER NOT NULL,
    showing INTEGER NOT NULL, "order" JSON NOT NULL, shown DATETIME NOT NULL,
    reserved_until DATETIME NOT NULL,
    CONSTRAINT pk_study_assignment PRIMARY KEY (id),
    CONSTRAINT uq_study_assignment_item_id UNIQUE (item_id, rater_id, showing),
    CONSTRAINT fk_study_assignment_item_id_study_item FOREIGN KEY (item_id)
        REFERENCES study_item (id),
    CONSTRAINT fk_study_assignment_rater_id_study_rater FOREIGN KEY (rater_id)
        REFERENCES study_rater (id)
);
CREATE INDEX ix_study_assignment_rater_id ON study_assignment (rater_id);
CREATE TABLE study_rating (
    assignment_id INTEGER NOT NULL, key VARCHAR NOT NULL, choice VARCHAR, ranking JSON,
    seconds FLOAT NOT NULL, reasons JSON, comment VARCHAR NOT NULL, confidence INTEGER,
    rubric JSON, created DATETIME NOT NULL,
    CONSTRAINT pk_study_rating PRIMARY KEY (assignment_id),
    CONSTRAINT fk_study_rating_assignment_id_study_assignment FOREIGN KEY (assignment_id)
        REFERENCES study_assignment (id)
);
INSERT INTO vote_chain (id, head) VALUES (1, '');
