import type { Channel } from '../../domain/records/channel.ts'
import { MAX_PREVIOUS_RESPONSES, type StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { inputItems } from '@sluice/wire/responses'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import { truncateName } from '../../call/truncate-name.ts'
import { type ItemSource, itemSource, textOfItems } from './response-items.ts'
import type { ResponseStore } from './response-store.ts'

/** The response that a request continues: stored at its upstream, or kept by the gateway. */
export type PreviousResponse =
  | { readonly kind: 'native'; readonly response: StoredResponse }
  /** `scan` is the client's request, preceded by the items of all responses that it continues. */
  | { readonly kind: 'kept'; readonly response: StoredResponse; readonly scan: ScannedObject }

/**
 * Finds the response that a request continues. Throws `previous_response_not_found` for an id that is not one
 * of the caller's, if a part of the conversation no longer exists, or if the conversation is too long to be
 * rebuilt.
 */
export async function findPreviousResponse(
  scan: ScannedObject,
  id: string,
  { caller: { user }, settings: { options }, readStore, holdCopies }: RequestReaderContext,
  responses: ResponseStore,
): Promise<PreviousResponse> {
  const known = await responses.facts(user.id, id)
  if (!known) throw notFound(id, options.keep_responses)
  const { response } = known
  if (known.contentBytes === 0) return { kind: 'native', response }
  const { body_limit: bodyLimit } = options
  const reading = readStore()
  try {
    await reading.begin()
    const links = await responses.chain(user.id, id, bodyLimit)
    const bytes = links.reduce((sum, link) => sum + (link.bytes ?? 0), 0)
    if (links.length > MAX_PREVIOUS_RESPONSES || bytes > bodyLimit) throw tooLong(id, bodyLimit)
    if (links.at(-1)?.previousId !== null || links.some((link) => link.bytes === null))
      throw new GatewayError(
        'previous_response_not_found',
        `Previous response with id '${shown(id)}' continues a response that is not kept any more.`,
      )
    const composed = new ComposedInput(scan, bytes, 2 * links.length)
    await reading.hold(composed.size)
    // No stored response is loaded while this call waits for the memory that its conversion needs.
    await holdCopies(composed.size)
    const sources = links
      .toReversed()
      .flatMap((link) => [
        itemSource(responses, user.id, link.id, 'input'),
        itemSource(responses, user.id, link.id, 'response'),
      ])
    const body = await composed.compose(sources)
    if (body.length > bodyLimit) throw tooLong(id, bodyLimit)
    return {
      kind: 'kept',
      response,
      scan: scanComposed(() => scanObject(body, RESPONSE_LIMITS), tooLong(id, bodyLimit)),
    }
  } finally {
    reading.end()
  }
}

/**
 * The channels that can continue a response. A response that its provider stores can be continued only by the
 * channel that created it. One that the gateway keeps can be continued by that channel, which comes first among
 * those of its priority, and by channels of other protocols.
 */
export function channelsToContinue(
  { kind, response }: PreviousResponse,
  channels: readonly Channel[],
): readonly Channel[] {
  const isOwn = ({ name }: Channel): boolean => name === response.channel
  const isNative = ({ protocol: protocols }: Channel): boolean => protocols.includes('responses')
  if (kind === 'native') {
    const native = channels.filter((channel) => isOwn(channel) && isNative(channel))
    if (native.length > 0) return native
    throw new GatewayError(
      'previous_response_not_found',
      `Previous response with id '${response.id}' was created by a channel that does not serve this model any more; send the whole conversation instead.`,
    )
  }
  const able = channels.filter((channel) => isOwn(channel) || !isNative(channel))
  if (able.length > 0)
    return able.toSorted((a, b) => b.priority - a.priority || Number(isOwn(b)) - Number(isOwn(a)))
  throw new GatewayError(
    'previous_response_not_found',
    `Previous response with id '${response.id}' is kept by the gateway, and this model's channels keep their own; send the whole conversation instead.`,
  )
}

/**
 * Scans a request with the items of earlier responses. It may have as many values as a response, and each part of it was
 * read before, so it fails only because together they have more: then `refusal` is thrown.
 */
export function scanComposed(scan: () => ScannedObject, refusal: GatewayError): ScannedObject {
  try {
    return scan()
  } catch {
    throw refusal
  }
}

function tooLong(id: string, bodyLimit: number): GatewayError {
  return new GatewayError(
    'previous_response_not_found',
    `Previous response with id '${shown(id)}' ends a conversation that is too long to be continued here: more than ${MAX_PREVIOUS_RESPONSES} responses, or ${bodyLimit} bytes or ${RESPONSE_LIMITS.nodes} JSON values with this request; send the messages that matter instead.`,
  )
}

function notFound(id: string, keepResponsesMs: number): GatewayError {
  const hint =
    keepResponsesMs === 0
      ? ' Responses of converted models are not kept here (options.keep_responses is 0).'
      : ' Responses are kept for options.keep_responses, unless they were made with store: false.'
  return new GatewayError(
    'previous_response_not_found',
    `Previous response with id '${shown(id)}' not found.${hint}`,
  )
}

// Returns an id for an error message. A text that is not an id is shortened, because a client may even have
// sent a key.
function shown(id: string): string {
  return /^resp_[\w-]{1,64}$/.test(id) ? id : truncateName(id.replace(/[^\w-]/g, '?')).slice(0, 16)
}

/**
 * Number of stored texts whose first parts are read at the same time. Reading a long conversation one text
 * after another would be slow.
 */
const READ_AT_ONCE = 8
const CLOSE_ARRAY = 0x5d

/**
 * A request, with the items of earlier responses inserted before those of its own input. It is one buffer
 * that is filled part by part.
 */
class ComposedInput {
  /** Maximum bytes of the composed request. */
  readonly size: number
  /** The client's request, without items of earlier responses. */
  readonly #own: Buffer
  /** Offset in `#own` at which the items of earlier responses are inserted, in bytes. */
  readonly #at: number

  /** `bytes`: maximum bytes of the stored texts with the items to insert; `texts`: number of these texts. */
  constructor(scan: ScannedObject, bytes: number, texts: number) {
    const input = inputItems(scan, (prefix) => `${prefix}_0`)
    this.#own = applyEdits(scan.bytes, scan, { remove: [], replace: new Map([['input', input]]) })
    this.#at = (scanObject(this.#own, RESPONSE_LIMITS).span('input')?.start ?? 0) + 1
    this.size = this.#own.length + bytes + texts
  }

  /** Inserts the items of the stored texts `sources` before the request's own items. */
  async compose(sources: readonly ItemSource[]): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(this.size)
    let length = this.#own.copy(bytes, 0, 0, this.#at)
    let isFirst = true
    for (let begin = 0; begin < sources.length; begin += READ_AT_ONCE) {
      const next = sources.slice(begin, begin + READ_AT_ONCE)
      await Promise.all(next.map((source) => source.part(0)))
      for (const source of next) {
        let separator = isFirst ? '' : ','
        for await (const text of textOfItems(source)) {
          length += bytes.write(separator + text, length)
          separator = ''
          isFirst = false
        }
      }
    }
    if (!isFirst && this.#own[this.#at] !== CLOSE_ARRAY) length += bytes.write(',', length)
    length += this.#own.copy(bytes, length, this.#at)
    return bytes.subarray(0, length)
  }
}
