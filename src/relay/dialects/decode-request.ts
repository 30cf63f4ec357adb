import { type ClientProvider, clientProvider } from '../../protocols/client-provider.ts'
import type { Dropped } from '../../protocols/codec.ts'
import type { Conversation, RepeatedFields } from '../../protocols/conversation.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import type { ConvertedDialect } from './converted-dialect.ts'

const NOTHING_REPEATED: RepeatedFields = new Map()

/** Parts of a request that are not in its body. */
export interface Beside {
  /** Parts that the request's path states, in a dialect whose bodies have none of them. */
  readonly target?: Pick<Conversation, 'model' | 'stream'>
  /** Members that the response repeats besides the request's own. */
  readonly repeats?: RepeatedFields | undefined
}

/** A decoded request of a client. */
export interface Decoded {
  readonly conversation: Conversation
  readonly provider: ClientProvider | undefined
  readonly dropped: ReadonlySet<string>
}

/** Decodes a request of a dialect, or tells why it cannot be decoded. */
export function decodeRequest(
  { codec }: ConvertedDialect,
  scan: ScannedObject,
  { target, repeats = NOTHING_REPEATED }: Beside,
): Decoded | { readonly refusal: unknown } {
  const dropped: Dropped = new Set()
  try {
    const decoded = { ...codec.decodeRequest(scan, dropped), ...target }
    const repeated = new Map([...(decoded.repeated ?? []), ...repeats])
    const conversation = repeats.size > 0 ? { ...decoded, repeated } : decoded
    return { conversation, provider: clientProvider(scan), dropped }
  } catch (refusal) {
    return { refusal }
  }
}
