import type { Channel } from '../../domain/channel.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import { inputItems, joinedArrays } from '../../protocols/responses/index.ts'
import type { Reader } from '../dialects/dialect.ts'
import { truncatedName } from '../truncated-name.ts'
import type { ResponseStore } from './response-store.ts'

/**
 * Kept contents that are loaded for one conversation, in multiples of the largest body: they contain settings
 * and tools of each response beside its items, and must fit into the memory of one client.
 */
const MAX_LOADED_BODIES = 3

/** The response that a request continues: at its upstream, or kept by the gateway. */
export type Continued =
  | { readonly kind: 'native'; readonly response: StoredResponse }
  /** `scan` is the request with the items of the whole chain in front of its own. */
  | { readonly kind: 'kept'; readonly response: StoredResponse; readonly scan: ScannedObject }

/**
 * Finds the response that a request continues. Throws `previous_response_not_found` for an id that is not one
 * of the caller's, and where a part of a kept chain is gone.
 */
export async function findContinued(
  scan: ScannedObject,
  id: string,
  { caller: { user }, settings: { options }, hold }: Reader,
  responses: ResponseStore,
): Promise<Continued> {
  const known = await responses.facts(user.id, id)
  if (!known) throw notFound(id, options.keepResponsesMs)
  const { response } = known
  if (known.contentBytes === 0) return { kind: 'native', response }
  const loaded = await responses.chainBytes(user.id, id)
  if (loaded > MAX_LOADED_BODIES * options.bodyLimit) throw tooLarge(options.bodyLimit)
  hold(loaded)
  const chain = await responses.chain(user.id, id)
  const oldest = chain.at(-1)
  if (!oldest || oldest.previousId !== null || chain.some(({ content }) => !content))
    throw new GatewayError(
      'previous_response_not_found',
      `Previous response with id '${shown(id)}' continues a response that is not kept any more.`,
    )
  const before = chain
    .toReversed()
    .flatMap(({ content }) => (content ? [content.input, outputOf(content.response)] : []))
  const input = joinedArrays([...before, inputItems(scan, (prefix) => `${prefix}_0`)])
  if (input.length > options.bodyLimit) throw tooLarge(options.bodyLimit)
  hold(Math.max(0, scan.bytes.length + Buffer.byteLength(input) - loaded))
  const body = edit(scan.bytes, scan, { remove: [], replace: new Map([['input', input]]) })
  return { kind: 'kept', response, scan: scanObject(body) }
}

/**
 * The channels that can continue a response: a native one needs the channel that created it; a kept one is
 * best continued there, too.
 */
export function channelsToContinue(
  { kind, response }: Continued,
  channels: readonly Channel[],
): readonly Channel[] {
  const own = channels.filter(({ name }) => name === response.channel)
  if (kind === 'native') {
    const native = own.filter(({ protocols }) => protocols.includes('responses'))
    if (native.length > 0) return native
    throw new GatewayError(
      'previous_response_not_found',
      `Previous response with id '${response.id}' was created by a channel that does not serve this model any more; send the whole conversation instead.`,
    )
  }
  const converted = (own.length > 0 ? own : channels).filter(
    ({ protocols }) => !protocols.includes('responses'),
  )
  if (converted.length > 0) return converted
  throw new GatewayError(
    'previous_response_not_found',
    `Previous response with id '${response.id}' is kept by the gateway, and this model's channels keep their own; send the whole conversation instead.`,
  )
}

/** The JSON text of a response's output. */
export function outputOf(response: string): string {
  const scan = scanObject(Buffer.from(response))
  const node = scan.span('output')?.node
  return node === undefined ? '[]' : scan.textOf(node)
}

function tooLarge(bodyLimit: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `the conversation that is continued is larger than ${bodyLimit} bytes`,
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

// Other texts may be anything, even a key.
function shown(id: string): string {
  return /^resp_[\w-]{1,64}$/.test(id) ? id : truncatedName(id.replace(/[^\w-]/g, '?')).slice(0, 16)
}
