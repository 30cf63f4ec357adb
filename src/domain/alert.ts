import { toScaledInteger } from './decimal.ts'
import { type FieldType, nullableType, plainTextType, oneOfType, integerType } from './records/field-types.ts'
import type { Options } from './options.ts'

/** Declaration of a type of alert. */
interface Alert {
  /** Fields of the alert's data. Amounts are in quota units, times in Unix seconds. */
  readonly data: Readonly<Record<string, FieldType>>
  /** Further fields of the alert's data, of which each alert has exactly one. */
  readonly either?: Readonly<Record<string, FieldType>>
  /** For alerts that the database triggers: the threshold, in quota units or in percent of a budget. */
  readonly threshold?: (options: Options) => number
}

const BUDGET = {
  subject: oneOfType(['user', 'token', 'group'], 'what the budget is of'),
  /** Id of the user or token whose budget the alert is about; null for the budget of a group. */
  id: nullableType(integerType()),
  name: plainTextType(),
  budget: integerType(),
  budget_period: oneOfType(['day', 'week', 'month'], 'a period'),
  budget_used: integerType(),
  budget_resets_at: integerType(),
} as const

/** All types of alerts, in the order in which messages list them. `docs/operations.md: Alerts`. */
export const ALERTS = {
  'budget.80': { data: BUDGET, threshold: () => 80 },
  'budget.100': { data: BUDGET, threshold: () => 100 },
  'quota.low': {
    data: {
      user_id: integerType(),
      username: plainTextType(),
      quota: integerType(),
      threshold: integerType(),
    },
    threshold: lowQuota,
  },
  'channel.resting': { data: { channel: plainTextType() } },
  'channel.back': { data: { channel: plainTextType() } },
  /** `reason` is the error message that refused clients get. */
  'gateway.overloaded': { data: { reason: plainTextType() } },
  /**
   * `tool` is the type of a provider's tool that has no price, `tier` a service tier that has none. Only one
   * of them is present.
   */
  'price.incomplete': {
    data: { model: plainTextType(), channel: plainTextType() },
    either: { tool: plainTextType(), tier: plainTextType() },
  },
  /** A usage that the channel reported for the model is not believed. */
  'usage.implausible': { data: { model: plainTextType(), channel: plainTextType() } },
  /** `days` is the number of whole days until the model's shutdown, rounded up. */
  'model.ending': {
    data: {
      model: plainTextType(),
      shutdown_date: plainTextType(),
      days: integerType(),
      successor: nullableType(plainTextType()),
    },
  },
  /**
   * `remaining` is what is left of the limit for the channel's key that has the most left; `resets_at` is
   * null if the provider did not state it.
   */
  'provider.limit': {
    data: {
      channel: plainTextType(),
      model: plainTextType(),
      kind: oneOfType(['requests', 'tokens'], 'what is limited'),
      remaining: integerType(),
      resets_at: nullableType(integerType()),
    },
  },
  'storage.failed': { data: { node: plainTextType(), reason: plainTextType() } },
  'storage.back': { data: { node: plainTextType() } },
} as const satisfies Readonly<Record<string, Alert>>

/** Name of a type of alert, such as `quota.low`. */
export type AlertType = keyof typeof ALERTS

/** Types of alerts, as gateway.yaml lists them. */
export const ALERT_TYPES = Object.keys(ALERTS) as AlertType[]

/**
 * An alert that is sent to receivers. It contains facts for the operator, but never keys or the content of
 * calls.
 */
export type AlertEvent = {
  readonly [Type in AlertType]: {
    readonly type: Type
    readonly data: DataOf<(typeof ALERTS)[Type]['data']> & EitherOf<(typeof ALERTS)[Type]>
  }
}[AlertType]

type EitherOf<A> = A extends { readonly either: infer E } ? Partial<DataOf<E>> : unknown

type DataOf<D> = {
  readonly [Name in keyof D]: D[Name] extends FieldType<infer V, infer _C, infer _J> ? V : never
}

/**
 * A model's coming shutdown, of which receivers are informed. `threshold` is the number of days before it
 * that has just been passed.
 */
export interface ModelRetirementEvent {
  readonly threshold: number
  readonly data: Extract<AlertEvent, { readonly type: 'model.ending' }>['data']
}

/** A receiver of alerts, as gateway.yaml declares it. */
export interface AlertTarget {
  /** URL of the receiver. It may contain a password, so messages and the log must not show it. */
  readonly url: string
  /** Key with which alerts are signed: `whsec_` followed by the key in base64. */
  readonly secret: string
  readonly types: readonly AlertType[]
}

/** The threshold of an alert that the database triggers. */
export interface AlertThreshold {
  readonly type: AlertType
  readonly threshold: number
}

/** The thresholds of those of the given types that the database triggers, sorted by type. */
export function alertThresholds(types: ReadonlySet<AlertType>, options: Options): AlertThreshold[] {
  return Object.entries<Alert>(ALERTS)
    .map(([type, { threshold }]) => ({ type: type as AlertType, threshold: threshold?.(options) }))
    .filter((one): one is AlertThreshold => types.has(one.type) && one.threshold !== undefined)
    .sort(compareThresholds)
}

/** Orders thresholds by type. */
export function compareThresholds(a: AlertThreshold, b: AlertThreshold): number {
  return a.type < b.type ? -1 : 1
}

/** The amount `options.quota_low` converted to quota units, rounded down. */
function lowQuota({ quota_low: quotaLow, quota_per_unit: quotaPerUnit }: Options): number {
  return Number(
    (toScaledInteger(quotaLow, quotaLow.scale) * BigInt(quotaPerUnit)) / 10n ** BigInt(quotaLow.scale),
  )
}
