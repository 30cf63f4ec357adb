/** Types of alerts, as gateway.yaml lists them. `docs/operations.md: Alerts`. */
export const ALERT_TYPES = [
  'budget.80',
  'budget.100',
  'quota.low',
  'channel.resting',
  'channel.back',
  'gateway.overloaded',
  'price.incomplete',
  'storage.failed',
  'storage.back',
] as const

/** Type of an alert. */
export type AlertType = (typeof ALERT_TYPES)[number]

/** Receiver of alerts, as gateway.yaml declares it. */
export interface AlertTarget {
  /** May contain a password of the receiver's: not for messages or the log. */
  readonly url: string
  /** `whsec_` and the signing key in base64. */
  readonly secret: string
  readonly types: readonly AlertType[]
}

/** Data of a budget that has reached a share of its amount. Amounts are quota units, times Unix seconds. */
interface BudgetAlert {
  readonly subject: 'user' | 'token' | 'group'
  /** Id of the user or token; null for a group. */
  readonly id: number | null
  readonly name: string
  readonly budget: number
  readonly budget_period: 'day' | 'week' | 'month'
  readonly budget_used: number
  readonly budget_resets_at: number
}

/** Data of a user whose quota fell below the threshold. Amounts are quota units. */
interface QuotaAlert {
  readonly user_id: number
  readonly username: string
  readonly quota: number
  readonly threshold: number
}

/** Data of a channel in cooldown, or back from it. */
interface ChannelAlert {
  readonly channel: string
}

/** Data of load shedding. */
interface OverloadAlert {
  /** Sentence that refused clients are told. */
  readonly reason: string
}

/** Data of a request that offered a tool without a price. */
interface PriceAlert {
  readonly model: string
  readonly channel: string
  /** Type of the tool. */
  readonly tool: string
}

/** Data of a storage that cannot be written. */
interface StorageFailure {
  /** Name of the node. */
  readonly node: string
  readonly reason: string
}

interface AlertData {
  readonly 'budget.80': BudgetAlert
  readonly 'budget.100': BudgetAlert
  readonly 'quota.low': QuotaAlert
  readonly 'channel.resting': ChannelAlert
  readonly 'channel.back': ChannelAlert
  readonly 'gateway.overloaded': OverloadAlert
  readonly 'price.incomplete': PriceAlert
  readonly 'storage.failed': StorageFailure
  readonly 'storage.back': Pick<StorageFailure, 'node'>
}

/** Event that receivers are told: facts for the operator, never content of calls, never keys. */
export type AlertEvent = {
  readonly [Type in AlertType]: { readonly type: Type; readonly data: AlertData[Type] }
}[AlertType]
