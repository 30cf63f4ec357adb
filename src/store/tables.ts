import type { Table } from './migrations/schema/table.ts'

/**
 * Tables of objects that are not records, with the formats of their columns (`Table.columns`). Their SQL and
 * the types of their rows follow. Times are Unix seconds or, if the name ends with `_ms`, milliseconds.
 */
export const TABLES = {
  /** Identity of the database, in one row. */
  store_identity: {
    columns: {
      id: 'integer primary key',
      /** Check value of the secret that this database was made with. */
      key_check: 'text',
    },
  },

  /** Accounts of budgets, one for each period in which they were used. */
  budget_periods: {
    columns: {
      /** `BudgetName`. */
      account: 'text primary key',
      /** `BudgetOwner`. */
      owner: 'text',
      /** The budget when it was last used, in quota units; 0 if unknown. */
      amount: 'integer',
      used: 'integer',
    },
    indexes: { budget_periods_by_owner: '(owner)' },
  },

  /** Budgets of which 80 % or 100 % were used, written by a trigger in the transaction that reached it. */
  budget_crossings: {
    columns: {
      account: 'text',
      /** 80 or 100; each once for each account. */
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
      /** JSON: `RefusedLimit`. */
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
      /** Client's address and header `User-Agent` at the sign-in. */
      address: "text default ''",
      user_agent: "text default ''",
      /** Time of the latest request, to the minute; 0 if there was none since the session began. */
      last_used: 'integer default 0',
      /** HMAC of the access token that began the session, which ends with it; null for other sign-ins. */
      access_token_hash: 'text?',
      /** Encrypted URL at which the identity provider ends its own session; null if it has none. */
      logout_cipher: 'text?',
    },
    indexes: { sessions_by_user: '(user_id)', sessions_by_end: '(expires_time)' },
  },

  /** Users by their identities at providers of OpenID Connect. */
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

  /** States of completed sign-ins by their HMACs, so that none is used twice. */
  used_states: {
    columns: { hash: 'text primary key', expires_time: 'integer' },
    indexes: { used_states_by_end: '(expires_time)' },
  },

  /** Responses by the ids that the gateway issued: `StoredResponse`. */
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
      /** Encrypted JSON of `StoredContent` or `ContentPartCounts`; null for a native response. */
      content_cipher: 'text?',
      call_id: 'text?',
      /** Prices of a background call, as `priceSetText` writes them. */
      rate: 'text?',
      /** JSON of a background response's end, for the node that holds its quota; null before. */
      outcome: 'text?',
      /** Bytes of the content as texts; null for a native response. */
      kept_bytes: 'integer?',
      /** JSON of the `StreamedPart`s of a background response; null if none was streamed. */
      streamed: 'text?',
      /** 1 if a background call offered tools without a price. */
      price_incomplete: 'integer default 0',
    },
    indexes: {
      stored_responses_by_call: '(call_id) where call_id is not null',
      // Excludes native responses, for which it would be a fifth of the cost; their ids sort by time.
      stored_responses_by_end: '(expires_ms) where content_cipher is not null or call_id is not null',
      stored_responses_by_age: '(user_id, created_ms) where content_cipher is not null',
    },
  },

  /** Parts of large kept contents; those without a row in `stored_responses` belong to no response. */
  response_parts: {
    columns: {
      response_id: 'text',
      part: 'integer',
      /** Time of the latest attempt to store it. */
      created_ms: 'integer',
      /** Encrypted text. */
      content_cipher: 'text',
    },
    key: ['response_id', 'part'],
    rows: 'plain',
    // The search for parts without a response looks only at the first part of each.
    indexes: { response_parts_first: '(created_ms, response_id) where part = 0' },
  },

  /** Accounts that can read encrypted reasoning, by the HMAC of the content and its owner. */
  reasoning_origins: {
    columns: { hash: 'text primary key', channel: 'text', key_tag: 'text', expires_ms: 'integer' },
    indexes: { reasoning_origins_by_end: '(expires_ms)' },
  },

  /** Signed parts of replies, for following turns in which the client returns the reply without them. */
  kept_signatures: {
    columns: {
      user_id: 'integer',
      /** HMAC of the owner and of what the client returns: the id of a tool call, or the text. */
      hash: 'text',
      /** Encrypted JSON of the account and the parts. */
      content_cipher: 'text',
      expires_ms: 'integer',
      /** Time since which it is kept. */
      kept_ms: 'integer default 0',
    },
    key: ['user_id', 'hash'],
    rows: 'plain',
    indexes: { kept_signatures_by_end: '(expires_ms)', kept_signatures_by_age: '(user_id, kept_ms)' },
  },

  /** Answers that are kept to be given again: `KeptAnswer`. */
  kept_answers: {
    columns: {
      /** `AnswerKind` */
      kind: 'text',
      /** HMAC of what finds the answer. */
      lookup: 'text',
      /** Id of the content; another one each time that the row is replaced. */
      answer_id: 'text',
      /** Owner of the bytes in `kept_sums`: the user, or 0 for answers with a bound of their own. */
      owner_id: 'integer',
      user_id: 'integer',
      token_id: 'integer',
      model: 'text',
      /** Encrypted JSON of status, headers and facts. */
      head_cipher: 'text',
      parts: 'integer',
      /** Bytes of the content. */
      bytes: 'integer',
      created_ms: 'integer',
      expires_ms: 'integer',
    },
    key: ['kind', 'lookup'],
    rows: 'plain',
    indexes: {
      kept_answers_by_end: '(expires_ms)',
      kept_answers_by_age: '(owner_id, created_ms)',
    },
  },

  /** Contents of kept answers; removed with their rows. What was never stored as a whole is removed with its day, on which it would expire. */
  answer_parts: {
    columns: {
      /** Day since 1970-01-01, UTC. */
      day: 'integer',
      answer_id: 'text',
      part: 'integer',
      /** Encrypted bytes. */
      content_cipher: 'text',
    },
    key: ['day', 'answer_id', 'part'],
    rows: 'plain',
  },

  /** Removals of kept answers; a call that began before one does not store its answer. Kept for a day. */
  answer_removals: {
    columns: {
      /** The number before it, and 1: in the order of the commits. */
      id: 'integer primary key',
      /** `AnswerKind` */
      kind: 'text',
      /** What was removed; null stands for all. */
      user_id: 'integer?',
      token_id: 'integer?',
      model: 'text?',
      removed_ms: 'integer',
    },
  },

  /** Calls with an idempotency key, whose answers may be among `kept_answers`. */
  idempotent_calls: {
    columns: {
      /** HMAC of the API key's id and the idempotency key. */
      lookup: 'text primary key',
      user_id: 'integer',
      /** HMAC of the path and the body. */
      fingerprint: 'text',
      /** Id of the attempt that asks the provider. */
      claim: 'text',
      /** Process of that attempt. */
      node: 'text',
      /** Time until which the process is believed to be alive; null once the call is over. */
      until_ms: 'integer?',
      expires_ms: 'integer',
    },
    indexes: {
      idempotent_calls_by_end: '(expires_ms)',
      idempotent_calls_under_way: '(node) where until_ms is not null',
    },
  },

  /** Total size of what is kept for each user, updated in the transactions that change the rows. */
  kept_sums: {
    columns: { user_id: 'integer primary key', bytes: 'integer' },
  },

  /** Settings made over HTTP, one row per entry of a section. */
  stored_settings: {
    columns: {
      /** Section of gateway.yaml (`options` or `groups`), or `ratios`, the model prices set over HTTP. */
      section: 'text',
      name: 'text',
      /** JSON as in gateway.yaml; of `ratios`, a mapping to decimals as texts. */
      value: 'text',
    },
    key: ['section', 'name'],
  },

  /** Names that channels had before they were renamed, by which their earlier calls are logged. */
  former_channel_names: {
    columns: {
      name: 'text',
      /** The present name of the channel, or the last one if it is deleted. */
      present: 'text',
    },
    key: ['name'],
    rows: 'plain',
  },

  /** Settings that the configuration file declared when it was last read, kept to detect what changes. */
  declared_settings: {
    columns: {
      kind: 'text',
      name: 'text',
      object_id: 'integer?',
      /** JSON of the fields that are not secret, and of the tags of the secret ones. */
      fields: 'text',
      tags: 'text',
    },
    key: ['kind', 'name'],
    rows: 'plain',
  },

  /** Entries of the audit log, in the order of their ids; the database refuses to change them. */
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
      /** JSON list of `FieldChange`. */
      changes: 'text',
    },
    indexes: { audit_log_by_time: '(at_ms)', audit_log_by_object: '(object_kind, object_name, id)' },
  },

  /**
   * Events that have not been delivered to receivers yet. A transaction that detects one adds a row without a
   * target.
   */
  alert_outbox: {
    columns: {
      /** Id of the event, the same for all targets. */
      id: 'text',
      /** Tag of the receiver; empty until the event is assigned to the receivers. */
      target: 'text',
      type: 'text',
      /** JSON of the event's data. */
      data: 'text',
      created_ms: 'integer',
      /** Time of the next attempt; for an attempt under way, the time at which it counts as lost. */
      due_ms: 'integer',
      /** Time of the first attempt. */
      first_ms: 'integer?',
      attempts: 'integer',
    },
    key: ['target', 'id'],
    indexes: { alert_outbox_by_due: '(target, due_ms)' },
  },

  /** Thresholds of the events that the database itself detects; events without a row are not added. */
  alert_thresholds: {
    columns: { type: 'text primary key', threshold: 'integer' },
  },

  /**
   * Conditions that some node has reported, such as a channel with an open circuit breaker, and the time at
   * which each is over unless a node reports it again.
   */
  alert_conditions: {
    columns: { name: 'text primary key', until_ms: 'integer' },
  },

  /** Node that delivers the events of all nodes, in one row. */
  alert_sender: {
    columns: { id: 'integer primary key', node: 'text', until_ms: 'integer' },
  },

  /** Users for whose low quota an alert was added, and whose quota has not been above the threshold since. */
  low_quotas_told: {
    columns: { user_id: 'integer primary key' },
  },

  /** Ends of models that upstreams listed. They stay if a list no longer names the model. */
  model_ends: {
    columns: {
      /** Tag of the upstream's address. */
      source: 'text',
      /** The upstream's name for the model. */
      model: 'text',
      /** `2026-10-23` */
      ends_on: 'text',
      /** Time at which an end was first listed. */
      known_ms: 'integer',
    },
    key: ['source', 'model'],
  },

  /** Models of whose end receivers were informed: the end, and the smallest threshold in days. */
  model_endings_told: {
    columns: { model: 'text primary key', ends_on: 'text', threshold: 'integer' },
  },

  /** Prices of a model in a group by version, written once: `priceSetText`. */
  price_sets: {
    columns: { version: 'text', model: 'text', group_name: 'text', content: 'text' },
    key: ['version', 'model', 'group_name'],
  },
} as const satisfies Readonly<Record<string, Omit<Table, 'name'>>>
