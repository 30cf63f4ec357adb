/** Columns of tokens that the admission of calls depends on, without the balance. */
export const TOKEN_COLUMNS: readonly string[] = [
  'status',
  'deleted_time',
  'unlimited_quota',
  'expired_time',
  'model_limits_enabled',
  'model_limits',
  'allow_ips',
  'group_name',
  'vendor_routes',
]

/** Columns of users that the admission of calls depends on, without the balance. */
export const USER_COLUMNS: readonly string[] = ['status', 'deleted_time', 'group_name', 'role']

/** Columns of both with the terms of calls: budgets and rate limits. */
export const TERM_COLUMNS: readonly string[] = [
  'budget',
  'budget_period',
  'rate_limit_requests',
  'rate_limit_tokens',
  'rate_limit_parallel',
  'rate_limit_window',
]

/** Columns of tokens with the part of the terms that an operator gave. */
export const OPERATOR_COLUMNS: readonly string[] = ['operator_terms']

/** Columns of tokens whose changes recall the leases. */
export const RECALLING_TOKEN_COLUMNS: readonly string[] = ['status', 'deleted_time', 'unlimited_quota']

/** Columns of users whose changes recall the leases. */
export const RECALLING_USER_COLUMNS: readonly string[] = ['status', 'deleted_time']
