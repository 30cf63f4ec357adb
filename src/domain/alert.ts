import { atScale } from './decimal.ts'
import { type FieldType, nullable, plainText, oneOf, integerWithin } from './records/field-types.ts'
import type { Options } from './options.ts'

/** Row of `ALERTS`. */
interface Alert {
  /** Fields of its data. Amounts are in quota units, times in Unix seconds. */
  readonly data: Readonly<Record<string, FieldType>>
  /** Further fields of its data, of which an event has one. */
  readonly either?: Readonly<Record<string, FieldType>>
  /** Threshold of an event that the database itself detects: quota units, or the percentage of a budget. */
  readonly threshold?: (options: Options) => number
}

const BUDGET = {
  subject: oneOf(['user', 'token', 'group'], 'what the budget is of'),
  /** Null for a group. */
  id: nullable(integerWithin()),
  name: plainText(),
  budget: integerWithin(),
  budget_period: oneOf(['day', 'week', 'month'], 'a period'),
  budget_used: integerWithin(),
  budget_resets_at: integerWithin(),
} as const

/** Alerts by type, in the order in which messages list them. `docs/operations.md: Alerts`. */
export const ALERTS = {
  'budget.80': { data: BUDGET, threshold: () => 80 },
  'budget.100': { data: BUDGET, threshold: () => 100 },
  'quota.low': {
    data: {
      user_id: integerWithin(),
      username: plainText(),
      quota: integerWithin(),
      threshold: integerWithin(),
    },
    threshold: lowQuota,
  },
  'channel.resting': { data: { channel: plainText() } },
  'channel.back': { data: { channel: plainText() } },
  /** The reason is the sentence that refused clients get. */
  'gateway.overloaded': { data: { reason: plainText() } },
  /** The tool is the type of a tool without a price, the tier a served tier of service; one is absent. */
  'price.incomplete': {
    data: { model: plainText(), channel: plainText() },
    either: { tool: plainText(), tier: plainText() },
  },
  /** The days until its end are whole ones, rounded up. */
  'model.ending': {
    data: {
      model: plainText(),
      shutdown_date: plainText(),
      days: integerWithin(),
      successor: nullable(plainText()),
    },
  },
  /** What the key with the most left has; the reset is null if the provider did not state it. */
  'provider.limit': {
    data: {
      channel: plainText(),
      model: plainText(),
      kind: oneOf(['requests', 'tokens'], 'what is limited'),
      remaining: integerWithin(),
      resets_at: nullable(integerWithin()),
    },
  },
  'storage.failed': { data: { node: plainText(), reason: plainText() } },
  'storage.back': { data: { node: plainText() } },
} as const satisfies Readonly<Record<string, Alert>>

/** Type of an alert. */
export type AlertType = keyof typeof ALERTS

/** Types of alerts, as gateway.yaml lists them. */
export const ALERT_TYPES = Object.keys(ALERTS) as AlertType[]

/**
 * Event that is sent to receivers. It contains facts for the operator, never the content of calls or keys.
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

/** The end of a model that receivers are informed of, and the threshold in days that it has passed. */
export interface ModelEndEvent {
  readonly threshold: number
  readonly data: Extract<AlertEvent, { readonly type: 'model.ending' }>['data']
}

/** Receiver of alerts, as gateway.yaml declares it. */
export interface AlertTarget {
  /** May contain the receiver's password, so it must not appear in messages or in the log. */
  readonly url: string
  /** `whsec_` followed by the signing key in base64. */
  readonly secret: string
  readonly types: readonly AlertType[]
}

/** An event that the database itself detects, and its threshold. */
export interface AlertThreshold {
  readonly type: AlertType
  readonly threshold: number
}

/** Thresholds of those events of the given types that the database itself detects, by type. */
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

/** The quota units that `options.quota_low` is worth, rounded down. */
function lowQuota({ quota_low: quotaLow, quota_per_unit: quotaPerUnit }: Options): number {
  return Number((atScale(quotaLow, quotaLow.scale) * BigInt(quotaPerUnit)) / 10n ** BigInt(quotaLow.scale))
}
