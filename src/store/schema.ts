import type { Generated, Selectable } from 'kysely'

/**
 * The tables, alike on every database. Money, seconds and milliseconds are 64-bit integers, yes and no are 1
 * and 0, and text never holds NUL. The column of a group is `group_name`, as `group` is a word of SQL's own.
 */
export interface Database {
  readonly users: UsersTable
  readonly tokens: TokensTable
  readonly holds: HoldsTable
  readonly usage_log: UsageLogTable
  readonly usage_days: UsageDaysTable
  readonly sessions: SessionsTable
  readonly channels: ChannelsTable
  readonly stored_settings: StoredSettingsTable
  readonly store_identity: StoreIdentityTable
}

/** `docs/api.md: User profile`, and what is never shown. */
interface UsersTable {
  id: Generated<number>
  /** Unique, deleted users included. */
  username: string
  display_name: string
  role: number
  status: number
  email: string
  code_host_id: string
  chat_a_id: string
  oidc_id: string
  chat_b_id: string
  chat_c_id: string
  forum_id: string
  group_name: string
  quota: number
  used_quota: number
  request_count: number
  aff_code: string
  aff_count: number
  aff_quota: number
  aff_history_quota: number
  inviter_id: number
  setting: string
  payment_customer: string
  sidebar_modules: string
  password_hash: string | null
  access_token_hash: string | null
  /** An administrator's note; never shown to the user. */
  remark: Generated<string>
  /**
   * The name that the user was made with, where it has another now: gateway.yaml may still declare it by
   * that.
   */
  first_username: Generated<string | null>
  created_time: number
  deleted_time: number | null
}

/** `docs/api.md: Token`. */
interface TokensTable {
  id: Generated<number>
  user_id: number
  name: string
  /** HMAC of the key without `sk-`; unique, deleted tokens included. */
  key_hash: string
  /** The sealed key without `sk-`. */
  key_cipher: string
  status: number
  created_time: number
  accessed_time: number
  expired_time: number
  remain_quota: number
  unlimited_quota: number
  used_quota: number
  model_limits_enabled: number
  model_limits: string
  allow_ips: string | null
  group_name: string
  vendor_routes: string
  deleted_time: number | null
}

/** Quota that a call in flight may use. */
interface HoldsTable {
  id: string
  owner: string
  token_id: number
  user_id: number
  amount: number
  prompt_amount: number
  progress_amount: number
  started_ms: number
  model: string
  channel: string
  group_name: string
  stream: number
  price_version: string
}

/** One row for each settlement. */
interface UsageLogTable {
  id: string
  ended_ms: number
  user_id: number
  token_id: number
  model: string
  upstream_model: string
  channel: string
  group_name: string
  input_tokens: number
  cache_read_tokens: number
  cache_write_5m_tokens: number
  cache_write_1h_tokens: number
  output_tokens: number
  reasoning_tokens: number
  web_searches: number
  quota: number
  price_version: string
  duration_ms: number
  first_byte_ms: number | null
  stream: number
  reason: string
}

/** The usage log summed up; kept when single rows of the log are not. */
interface UsageDaysTable {
  /** Of the end of the calls: days since 1970-01-01, UTC. */
  day: number
  user_id: number
  token_id: number
  model: string
  channel: string
  group_name: string
  /** Calls that were answered, as in `request_count` of a user. */
  requests: number
  input_tokens: number
  cache_read_tokens: number
  cache_write_5m_tokens: number
  cache_write_1h_tokens: number
  output_tokens: number
  reasoning_tokens: number
  web_searches: number
  quota: number
}

/** Who is logged in, in the console. */
interface SessionsTable {
  /** HMAC of what the cookie holds. */
  id_hash: string
  user_id: number
  created_time: number
  expires_time: number
}

/** Channels that were made over HTTP; those that are declared in gateway.yaml are not here. */
interface ChannelsTable {
  id: Generated<number>
  /** Unique among these. */
  name: string
  /** JSON: the fields of a channel as gateway.yaml writes them, but for its name and its keys. */
  declared: string
  /** The sealed keys, one a line. */
  keys_cipher: string
  /** 1 enabled, 2 disabled. */
  status: number
  /** JSON: fields that tools of this family of gateways keep with a channel, and that mean nothing here. */
  family: string
  created_time: number
  /** Unix seconds of the last test; 0 = never. */
  test_time: number
  /** How long the last test took. */
  response_ms: number
}

/** What was set over HTTP beside gateway.yaml, entry by entry of its sections. */
interface StoredSettingsTable {
  /**
   * A section of gateway.yaml, options or groups; or `ratios`, the prices of models as they are set over
   * HTTP.
   */
  section: string
  name: string
  /** JSON, as gateway.yaml writes it; of ratios a mapping to decimals as texts. */
  value: string
}

/** One row: what this database was made with. */
interface StoreIdentityTable {
  id: number
  /** Tells whether a secret is the one that this database was made with. */
  key_check: string
}

/** A user as it is stored. */
export type UserRow = Selectable<UsersTable>

/** A token as it is stored. */
export type TokenRow = Selectable<TokensTable>

/** A channel as it is stored. */
export type ChannelRow = Selectable<ChannelsTable>

/** An entry that was set over HTTP, as it is stored. */
export type StoredSettingRow = Selectable<StoredSettingsTable>

/** A row of the usage log as it is stored. */
export type UsageLogRow = Selectable<UsageLogTable>
