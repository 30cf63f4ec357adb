import { decimalText } from './decimal.ts'
import type { CallDelays, ImageForm } from './price.ts'
import type { ServicePriceTerms } from './service-rate.ts'
import { TOKEN_KINDS, type TokenCostLine } from './token-kinds.ts'
import type { PricedTool } from './tool-use.ts'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'

/**
 * Kinds of tokens whose counts have no database column of their own. They are stored in the column
 * `particulars`, by the names of their cost lines.
 */
const UNSTORED_KINDS = TOKEN_KINDS.filter(({ count }) => !(count in NO_USAGE))

/** One attempt of a call at an upstream. */
export interface AttemptEntry {
  readonly channel: string
  /** Index of the key in the channel's list of keys, starting at 0. */
  readonly key_index: number
  /** Milliseconds from the start of the call. */
  readonly started_ms: number
  readonly duration_ms: number
  /** HTTP status of the upstream's response; null if there was none. */
  readonly status: number | null
  /** Cause of the attempt's failure, from a small fixed set; null if the attempt succeeded. */
  readonly cause: string | null
  /** The provider's error message, without secrets; absent if there is none. */
  readonly message?: string
}

/**
 * Facts about a call that have no database column of their own. A fact that has its usual value is left out.
 */
export interface CallExtraFacts extends Readonly<Partial<Record<TokenCostLine, number>>> {
  /** Size and quality of generated images. */
  readonly size?: string | undefined
  readonly quality?: string | undefined
  /**
   * Uses of the provider's tools, and media that are charged in addition to tokens. Prices are in USD, as
   * decimal texts.
   */
  readonly tools?: readonly {
    readonly kind: PricedTool['kind']
    readonly count: number
    readonly price: string
  }[]
  /** The service tier or region that multiplied the token prices; absent for the standard tier. */
  readonly served?: ServicePriceTerms
  /** Milliseconds from the start of the call to its first attempt. */
  readonly queued_ms?: number
  /** Milliseconds for which the last attempt waited for a new connection. */
  readonly connect_ms?: number
  /** Fields of the request that were not sent to the upstream. */
  readonly dropped?: readonly string[]
  /** Set if the call had an idempotency key. */
  readonly idempotent?: true
}

/** Facts about a call without a database column of their own, as JSON; undefined if there are none. */
export function callExtraFactsText(
  usage: Usage,
  {
    form,
    tools,
    served,
    isIdempotent,
  }: {
    readonly form: ImageForm | undefined
    readonly tools: readonly PricedTool[]
    readonly served?: ServicePriceTerms | undefined
    readonly isIdempotent?: boolean | undefined
  },
  { queuedMs, connectMs }: CallDelays,
  dropped: readonly string[],
): string | undefined {
  const hasForm = usage.images > 0 && form?.size !== undefined
  const isStored = UNSTORED_KINDS.every(({ count }) => !usage[count])
  if (isStored && !hasForm && !served && !isIdempotent && tools.length === 0 && dropped.length === 0)
    return delaysText(queuedMs, connectMs)
  return JSON.stringify({
    ...(!isStored && unstoredCounts(usage)),
    ...(hasForm && form),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ ...tool, price: decimalText(tool.price) })) }),
    ...(served && { served }),
    ...(queuedMs > 0 && { queued_ms: queuedMs }),
    ...(connectMs > 0 && { connect_ms: connectMs }),
    ...(dropped.length > 0 && { dropped }),
    ...(isIdempotent && { idempotent: true as const }),
  } satisfies CallExtraFacts)
}

function unstoredCounts(usage: Usage): CallExtraFacts {
  return Object.fromEntries(
    UNSTORED_KINDS.flatMap(({ line, count }) => (usage[count] ? [[line, usage[count]]] : [])),
  )
}

/** Adds the token counts that are stored in `particulars` to a call's usage. */
export function restoreUnstoredCounts(usage: Usage, particulars: CallExtraFacts): Usage {
  const counts = UNSTORED_KINDS.map(({ line, count }) => [count, particulars[line] ?? 0])
  return { ...usage, ...Object.fromEntries(counts) }
}

// Formatted by hand, because most calls have no facts but the delays, and building an object would take
// longer than the rest of the row.
function delaysText(queuedMs: number, connectMs: number): string | undefined {
  if (connectMs > 0)
    return queuedMs > 0
      ? `{"queued_ms":${queuedMs},"connect_ms":${connectMs}}`
      : `{"connect_ms":${connectMs}}`
  return queuedMs > 0 ? `{"queued_ms":${queuedMs}}` : undefined
}
