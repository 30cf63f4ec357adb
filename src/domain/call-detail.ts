import { decimalText } from './decimal.ts'
import type { ImageForm } from './image-price.ts'
import { TOKEN_KINDS, type TokenLine } from './token-kinds.ts'
import type { PricedTool } from './tool-use.ts'
import { NO_USAGE, type Usage } from './usage.ts'

/** Kinds of tokens whose counts have no column: the particulars have them, by the names of their lines. */
const UNSTORED_KINDS = TOKEN_KINDS.filter(({ count }) => !(count in NO_USAGE))

/** One request of a call to an upstream. */
export interface AttemptEntry {
  readonly channel: string
  /** Position of the key among those of the channel, from 0. */
  readonly key_index: number
  /** Milliseconds from the start of the call. */
  readonly started_ms: number
  readonly duration_ms: number
  /** Status of the upstream's response; null if none came. */
  readonly status: number | null
  /** Cause of its failure in a few fixed words; null if it was answered. */
  readonly cause: string | null
}

/** Facts about a call beside the columns of its row; each is left out where it is the usual one. */
export interface Particulars extends Readonly<Partial<Record<TokenLine, number>>> {
  /** Size and quality of its images. */
  readonly size?: string | undefined
  readonly quality?: string | undefined
  /** Uses of the provider's tools, and media that are priced beside tokens; prices are USD as texts. */
  readonly tools?: readonly {
    readonly kind: PricedTool['kind']
    readonly count: number
    readonly price: string
  }[]
  /** Milliseconds from the start of the call to its first attempt. */
  readonly queued_ms?: number
  /** Milliseconds that the last attempt waited for a new connection. */
  readonly connect_ms?: number
  /** Fields of the request that the upstream did not get. */
  readonly dropped?: readonly string[]
}

/** Times of a call before its upstream was at work, in milliseconds. */
export interface CallDelays {
  readonly queuedMs: number
  readonly connectMs: number
}

/** The particulars of a call as JSON; undefined where there are none. */
export function particularsText(
  usage: Usage,
  { form, tools }: { readonly form: ImageForm | undefined; readonly tools: readonly PricedTool[] },
  { queuedMs, connectMs }: CallDelays,
  dropped: readonly string[],
): string | undefined {
  const hasForm = usage.images > 0 && form?.size !== undefined
  const isStored = UNSTORED_KINDS.every(({ count }) => !usage[count])
  if (isStored && !hasForm && tools.length === 0 && dropped.length === 0)
    return delaysText(queuedMs, connectMs)
  return JSON.stringify({
    ...(!isStored && unstoredCounts(usage)),
    ...(hasForm && form),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ ...tool, price: decimalText(tool.price) })) }),
    ...(queuedMs > 0 && { queued_ms: queuedMs }),
    ...(connectMs > 0 && { connect_ms: connectMs }),
    ...(dropped.length > 0 && { dropped }),
  } satisfies Particulars)
}

function unstoredCounts(usage: Usage): Particulars {
  return Object.fromEntries(
    UNSTORED_KINDS.flatMap(({ line, count }) => (usage[count] ? [[line, usage[count]]] : [])),
  )
}

/** A usage with the counts that the particulars of its call have. */
export function withUnstored(usage: Usage, particulars: Particulars): Usage {
  const counts = UNSTORED_KINDS.map(({ line, count }) => [count, particulars[line] ?? 0])
  return { ...usage, ...Object.fromEntries(counts) }
}

// Most calls have nothing else: an object of their own would cost more than the rest of a row.
function delaysText(queuedMs: number, connectMs: number): string | undefined {
  if (connectMs > 0)
    return queuedMs > 0
      ? `{"queued_ms":${queuedMs},"connect_ms":${connectMs}}`
      : `{"connect_ms":${connectMs}}`
  return queuedMs > 0 ? `{"queued_ms":${queuedMs}}` : undefined
}
