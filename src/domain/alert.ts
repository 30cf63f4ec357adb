import { toScaledInteger } from './decimal.ts'
import { CHANNEL_CAUSES } from './channel-cause.ts'
import {
  type FieldType,
  listType,
  nullableType,
  plainTextType,
  oneOfType,
  integerType,
} from './records/field-types.ts'
import type { Options } from './options.ts'

/** Declaration of a type of alert. */
interface Alert {
  /** Fields of the alert's data. Amounts are in quota units, times in Unix seconds. */
  readonly data: Readonly<Record<string, FieldType>>
  /** Further fields of the alert's data, each of which may be absent. */
  readonly more?: Readonly<Record<string, FieldType>>
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

/** An event about a channel. `cause` is one of a closed list, never a provider's text. */
const CHANNEL_EVENT = {
  data: { channel: plainTextType() },
  more: {
    cause: oneOfType(CHANNEL_CAUSES, 'why'),
    status: nullableType(integerType()),
    models: listType(plainTextType(), 'models'),
    calls_lost: integerType(),
    url: plainTextType(),
  },
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
  'channel.resting': CHANNEL_EVENT,
  /** Every key of the channel was refused, or its account is at fault. */
  'channel.no_key': CHANNEL_EVENT,
  'channel.back': CHANNEL_EVENT,
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
  /** A changed gateway.yaml or prices file was refused; `file` and `line` name its first mistake. */
  'config.refused': {
    data: {
      node: plainTextType(),
      file: plainTextType(),
      line: nullableType(integerType()),
      mistakes: integerType(),
    },
  },
  /** A tool of an MCP server is withheld; `approved_digest` is null if no definition of it was approved. */
  'mcp.tool_changed': {
    data: {
      server: plainTextType(),
      tool: plainTextType(),
      digest: plainTextType(),
      approved_digest: nullableType(plainTextType()),
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
    readonly data: DataOf<(typeof ALERTS)[Type]['data']> &
      EitherOf<(typeof ALERTS)[Type]> &
      MoreOf<(typeof ALERTS)[Type]>
  }
}[AlertType]

type EitherOf<A> = A extends { readonly either: infer E } ? Partial<DataOf<E>> : unknown

type MoreOf<A> = A extends { readonly more: infer M } ? Partial<DataOf<M>> : unknown

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

/** Forms of the messages to receivers: Standard Webhooks, or the one of a chat. */
export const ALERT_FORMATS = ['standard', 'slack', 'teams', 'discord'] as const
export type AlertFormat = (typeof ALERT_FORMATS)[number]

/** A receiver of alerts, as gateway.yaml declares it. */
export interface AlertTarget {
  /**
   * URL of the receiver, or `mailto:` with addresses. It may contain a password, so messages and the log must
   * not show it.
   */
  readonly url: string
  /**
   * Key with which alerts are signed: `whsec_` followed by the key in base64. Empty for chats and mail, which
   * verify no signature.
   */
  readonly secret: string
  readonly format: AlertFormat
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

/** The addresses of a `mailto:` URL; undefined if it is another URL, or has anything else. */
export function mailAddresses(url: string): readonly string[] | undefined {
  if (!/^mailto:/i.test(url)) return undefined
  const addresses = url.slice('mailto:'.length).split(',')
  return addresses.every((one) => MAIL_ADDRESS.test(one)) ? addresses : undefined
}

const MAIL_ADDRESS = /^[\w.!#$&'*+/=?^`{|}~-]{1,64}@[a-z\d](?:[a-z\d.-]{0,250}[a-z\d])?$/i

/** The host of a receiver's address, for lists and the log. */
export function receiverHost(url: string): string {
  return mailAddresses(url)?.[0]?.split('@').at(-1) ?? new URL(url).host
}
