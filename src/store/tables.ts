import type { Table } from './migrations/schema/table.ts'

/**
 * Tables whose rows are not records, with the formats of their columns (`Table.columns`). Their SQL and the
 * types of their rows are derived from this. Times are Unix seconds, or Unix milliseconds if the column's
 * name ends with `_ms`.
 */
export const TABLES = {
  /** The identity of the database; one row. */
  store_identity: {
    columns: {
      id: 'integer primary key',
      /**
       * Value by which a start detects that the gateway secret is not the one that the database was created
       * with.
       */
      key_check: 'text',
    },
  },

  /** State of the secret; one row once the secret was changed. `docs/security.md: Change the secret`. */
  secret_state: {
    columns: {
      id: 'integer primary key',
      /** Value of `store_identity.key_check` for the new secret; null unless the secret is being changed. */
      next_check: 'text?',
      /** Key of the HMACs that stay the same when the secret changes, encrypted with the new secret. */
      lookup_cipher: 'text',
    },
  },

  /** What nodes know of a second secret, so that a change begins and ends only when all of them can go along. */
  node_secrets: {
    columns: {
      node: 'text primary key',
      /** `Secrets.check` of the secret with which the node encrypts. */
      key_check: 'text',
      /** `Secrets.check` of the secret that it also accepts; null if there is none. */
      other_check: 'text?',
    },
  },

  /** Accounts of budgets, one for each period in which the budget was used. */
  budget_periods: {
    columns: {
      /** Name of the account (`BudgetName`). */
      account: 'text primary key',
      /** Who has the budget (`BudgetOwner`). */
      owner: 'text',
      /** Amount of the budget when it was last used, in quota units; 0 if unknown. */
      amount: 'integer',
      used: 'integer',
    },
    indexes: { budget_periods_by_owner: '(owner)' },
  },

  /**
   * Budgets that were used up to 80 % or 100 %. A trigger adds the row in the transaction that reached this
   * percentage.
   */
  budget_crossings: {
    columns: {
      account: 'text',
      /** The percentage that was reached: 80 or 100. An account has at most one row for each. */
      percent: 'integer',
      amount: 'integer',
      used: 'integer',
    },
    key: ['account', 'percent'],
  },

  /** Refused calls, kept for 72 hours. */
  refused_calls: {
    columns: {
      /** The call's `x-request-id`, which sorts by time. */
      id: 'sorted primary key',
      refused_ms: 'integer',
      user_id: 'integer',
      token_id: 'integer',
      model: 'text',
      group_name: 'text',
      kind: 'text',
      status: 'integer',
      type: 'text',
      code: 'text',
      message: 'text',
      retry_after: 'integer?',
      /**
       * The limit that refused the call, as JSON of `RefusedLimit`; null if it was refused for another
       * reason.
       */
      limited: 'text?',
    },
    indexes: {
      refused_calls_by_key: '(token_id, id)',
      refused_calls_by_user: '(user_id, id)',
    },
  },

  /** Login sessions. */
  sessions: {
    columns: {
      /** HMAC of the cookie's value. */
      id_hash: 'text primary key',
      user_id: 'integer references users (id)',
      created_time: 'integer',
      expires_time: 'integer',
      /** Address and header `User-Agent` of the client at the sign-in. */
      address: "text default ''",
      user_agent: "text default ''",
      /**
       * Unix seconds of the latest request with the session, rounded to minutes; 0 if there was none since
       * the session began.
       */
      last_used: 'integer default 0',
      /**
       * HMAC of the access token that began the session. The session is valid only as long as that token.
       * Null for other types of sign-in.
       */
      access_token_hash: 'text?',
      /** Encrypted URL that ends the session at the identity provider; null if there is none. */
      logout_cipher: 'text?',
    },
    indexes: { sessions_by_user: '(user_id)', sessions_by_end: '(expires_time)' },
  },

  /** Links users to their identities at OpenID Connect providers. */
  /** Invitations that are not accepted, withdrawn or expired yet. */
  invitations: {
    columns: {
      id: 'id',
      /** HMAC of the token in the link. */
      token_hash: 'text unique',
      /** Id of the user who invites; 0 for a command. */
      inviter_id: 'integer',
      group_name: 'text',
      quota: 'integer',
      budget: 'integer',
      budget_period: 'text',
      created_time: 'integer',
      expires_time: 'integer',
    },
    indexes: { invitations_by_inviter: '(inviter_id)' },
  },

  identities: {
    columns: {
      issuer: 'text',
      /** Claim `sub`, which is unique at its issuer and never reassigned. */
      subject: 'text',
      user_id: 'integer references users (id)',
      created_time: 'integer',
    },
    key: ['issuer', 'subject'],
    indexes: { identities_by_user: '(user_id)' },
  },

  /** States of completed sign-ins, as HMACs, so that each state is used only once. */
  used_states: {
    columns: { hash: 'text primary key', expires_time: 'integer' },
    indexes: { used_states_by_end: '(expires_time)' },
  },

  /** Responses by the id that the gateway gave them: `StoredResponse`. */
  stored_responses: {
    columns: {
      id: 'sorted primary key',
      user_id: 'integer',
      model: 'text',
      group_name: 'text',
      channel: 'text',
      key_tag: 'text',
      upstream_id: 'text',
      tokens: 'integer',
      previous_id: 'text?',
      created_ms: 'integer',
      expires_ms: 'integer',
      call_id: 'text?',
      /** Prices of a background call, as `priceSetText` writes them. */
      rate: 'text?',
      /**
       * How a background response ended, as JSON, for the node that holds the quota of its call; null until
       * then.
       */
      outcome: 'text?',
      /** Parts of a background response that were streamed, as JSON of `StreamedPart`s; null if none were. */
      streamed: 'text?',
      /** 1 if a background call offered tools for which no price is configured. */
      price_incomplete: 'integer default 0',
    },
    indexes: {
      stored_responses_by_call: '(call_id) where call_id is not null',
      // Excludes other responses, because the index would make their storage a fifth more expensive. Those that
      // the provider has are found by their ids, which sort by time; those that are kept, by their rows in `kept`.
      stored_responses_by_end: '(expires_ms) where call_id is not null',
    },
  },

  /** Which channel and key can read encrypted reasoning, by the HMAC of the reasoning and its owner. */
  reasoning_origins: {
    columns: { hash: 'text primary key', channel: 'text', key_tag: 'text', expires_ms: 'integer' },
    indexes: { reasoning_origins_by_end: '(expires_ms)' },
  },

  /** What is kept until it expires, of several kinds: `KEPT_KINDS`. */
  kept: {
    columns: {
      kind: 'text',
      key: 'text',
      /** Id of the entry's content, which changes each time the row is replaced; may be empty if it has none. */
      content_id: 'text',
      user_id: 'integer',
      token_id: 'integer',
      model: 'text',
      /** Share in which the bytes count: `KEPT_SHARES`; empty if they count nowhere. */
      share: 'text',
      /** Row of `kept_sums` in this share: the user, or 0 in a common share. */
      owner_id: 'integer',
      /** Encrypted facts of the entry; null for an incomplete content. */
      cipher: 'text?',
      parts: 'integer',
      bytes: 'integer',
      created_ms: 'integer',
      expires_ms: 'integer',
    },
    key: ['kind', 'key'],
    rows: 'plain',
    indexes: { kept_by_end: '(expires_ms)', kept_by_age: '(share, owner_id, created_ms)' },
  },

  /** The contents of what is kept, in parts, which are removed with their rows in `kept`. */
  kept_parts: {
    columns: {
      content_id: 'text',
      part: 'integer',
      /** Kind of the entry. */
      kind: 'text',
      /** Encrypted bytes of the part. */
      cipher: 'text',
    },
    key: ['content_id', 'part'],
    rows: 'plain',
  },

  /** Removals of kept answers. A call that began before a matching removal does not store its answer. */
  answer_removals: {
    columns: {
      /** Number of the removal. Numbers are consecutive, in the order of the commits. */
      id: 'integer primary key',
      /** Kind of what is removed: `KeptKind`. */
      kind: 'text',
      /** Filter of the removal: only answers with these values are removed; null matches all values. */
      user_id: 'integer?',
      token_id: 'integer?',
      model: 'text?',
      removed_ms: 'integer',
    },
  },

  /** Calls with an idempotency key. Their answers may be in `kept`. */
  idempotent_calls: {
    columns: {
      /** HMAC of the API key's id and the idempotency key. */
      lookup: 'text primary key',
      user_id: 'integer',
      /** HMAC of the request's path and body. */
      fingerprint: 'text',
      /** Id of the request that claimed the call and sends it to the provider. */
      claim: 'text',
      /** Process that handles the request in `claim`. */
      node: 'text',
      /** Time until which the process in `node` counts as running; null once the call has ended. */
      until_ms: 'integer?',
      expires_ms: 'integer',
    },
    indexes: {
      idempotent_calls_by_end: '(expires_ms)',
      idempotent_calls_under_way: '(node) where until_ms is not null',
    },
  },

  /**
   * Bytes of what is kept, by share, updated in the same transactions as the rows. In a common share, the whole has the
   * user 0.
   */
  kept_sums: {
    columns: { share: 'text', user_id: 'integer', bytes: 'integer' },
    key: ['user_id', 'share'],
  },

  /** Settings made over HTTP, one row for each entry of a section. */
  stored_settings: {
    columns: {
      /**
       * Section of gateway.yaml (such as `options` or `groups`), or `ratios` for model prices set over HTTP.
       */
      section: 'text',
      name: 'text',
      /** JSON as in gateway.yaml; for `ratios`, an object with decimal numbers as texts. */
      value: 'text',
    },
    key: ['section', 'name'],
  },

  /** Names that channels had before they were renamed. Earlier calls are logged with these names. */
  former_channel_names: {
    columns: {
      name: 'text',
      /** Present name of the channel, or its last name if it was deleted. */
      present: 'text',
    },
    key: ['name'],
    rows: 'plain',
  },

  /**
   * Settings declared in the configuration file when it was last read, by which changes to the file are
   * detected.
   */
  declared_settings: {
    columns: {
      kind: 'text',
      name: 'text',
      object_id: 'integer?',
      /**
       * JSON of the setting's fields that are not secret. `tags` is JSON with a keyed hash of each secret
       * field.
       */
      fields: 'text',
      tags: 'text',
    },
    key: ['kind', 'name'],
    rows: 'plain',
  },

  /** Entries of the audit log, sorted by id. The database refuses changes to them. */
  audit_log: {
    columns: {
      id: 'id',
      at_ms: 'integer',
      actor_id: 'integer',
      object_id: 'integer?',
      actor: 'text',
      via: 'text',
      address: 'text',
      action: 'text',
      object_kind: 'text',
      object_name: 'text',
      /** JSON of a list of `FieldChange`. */
      changes: 'text',
    },
    indexes: { audit_log_by_time: '(at_ms)', audit_log_by_object: '(object_kind, object_name, id)' },
  },

  /**
   * Events that still have to be delivered to receivers. The transaction that detects an event adds a row
   * without a target.
   */
  alert_outbox: {
    columns: {
      /** Id of the event, equal for all its receivers. */
      id: 'text',
      /** Tag that identifies the receiver; empty until the event is assigned to receivers. */
      target: 'text',
      type: 'text',
      /** JSON of the event's data. */
      data: 'text',
      created_ms: 'integer',
      /**
       * Time of the next attempt to deliver the event. During an attempt, the time at which the attempt
       * counts as lost.
       */
      due_ms: 'integer',
      /** Time of the first attempt to deliver the event. */
      first_ms: 'integer?',
      attempts: 'integer',
    },
    key: ['target', 'id'],
    indexes: { alert_outbox_by_due: '(target, due_ms)' },
  },

  /**
   * Thresholds of the events that the database itself detects. An event without a row in this table is not
   * detected.
   */
  alert_thresholds: {
    columns: { type: 'text primary key', threshold: 'integer' },
  },

  /**
   * Conditions that a node has reported, such as a channel with an open circuit breaker. `until_ms` is the
   * time at which a condition ends unless a node reports it again.
   */
  alert_conditions: {
    columns: { name: 'text primary key', until_ms: 'integer' },
  },

  /** The node that delivers the alerts of all nodes; one row. */
  alert_sender: {
    columns: { id: 'integer primary key', node: 'text', until_ms: 'integer' },
  },

  /**
   * Users for whose low quota an alert was added, and whose quota has not risen above the threshold since.
   */
  low_quotas_told: {
    columns: { user_id: 'integer primary key' },
  },

  /** Shutdown days of models, as listed by upstreams. They stay if a list no longer contains the model. */
  model_ends: {
    columns: {
      /** Hash of the upstream's base URL. */
      source: 'text',
      /** Name of the model as the upstream lists it. */
      model: 'text',
      /** Day of the shutdown, as `2026-10-23`. */
      ends_on: 'text',
      /** Time at which a shutdown was first listed. */
      known_ms: 'integer',
    },
    key: ['source', 'model'],
  },

  /**
   * Models about whose shutdown receivers were informed: the day of the shutdown, and the smallest number of
   * days before it at which they were.
   */
  model_endings_told: {
    columns: { model: 'text primary key', ends_on: 'text', threshold: 'integer' },
  },

  /**
   * Prices of a model in a group, by version of the prices. A row is never changed. Its format is that of
   * `priceSetText`.
   */
  price_sets: {
    columns: { version: 'text', model: 'text', group_name: 'text', content: 'text' },
    key: ['version', 'model', 'group_name'],
  },
} as const satisfies Readonly<Record<string, Omit<Table, 'name'>>>
