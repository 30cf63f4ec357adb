import type { DroppedFields } from '../../codec.ts'
import {
  type Check,
  checkEachObject,
  checkMembers,
  type JsonSchema,
  objectCheck,
  refuseField,
  requestSchema,
  withSchema,
} from '../../field-check.ts'
import { type Fields, describeValueKind } from '../../field.ts'
import { asRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { MESSAGE_TOKENS } from '../../prompt-tokens.ts'
import type { TextsToEmbed } from '../../texts-to-embed.ts'
import { GEMINI_EMBED_PROMPT_RULES, mediaIn } from '../native/prompt.ts'
import { memberInEitherSpelling, valueNodeOf } from '../field-spelling.ts'
import type { UpstreamSettings } from '../../upstream-settings.ts'
import { type EditedRequest, editRequest } from '../../edit-request.ts'
import { renderArray, type ElementChange, replaceMemberValue } from '../../json/json-edit.ts'
import { modelResourceName } from '../model-name.ts'

/**
 * Methods of embedding models: `embedContent` for one content, `batchEmbedContents` for a list of requests
 * with one content each.
 */
export type EmbedMethod = 'embedContent' | 'batchEmbedContents'

/** The fields of a request that the gateway reads. All other fields are forwarded unchanged. */
export interface GeminiEmbedRequest {
  /** Maximum number of tokens of the contents. */
  readonly promptBound: number
  /** Maximum number of tokens of each content. */
  readonly inputBounds: readonly number[]
  readonly hasMedia: boolean
}

/**
 * Maximum number of requests in a list, the same as the maximum number of inputs of a request to
 * `/v1/embeddings`.
 */
const MAX_REQUESTS = 2048

const CHECKS: Readonly<Record<EmbedMethod, ReadonlyMap<string, Check>>> = {
  embedContent: new Map([['content', objectCheck]]),
  batchEmbedContents: new Map([
    ['requests', withSchema({ type: 'array', minItems: 1, items: { type: 'object' } }, checkRequests)],
  ]),
}

const REQUIRED = { embedContent: ['content'], batchEmbedContents: ['requests'] } as const

/** Builds the JSON Schema of valid requests of `embedContent` or `batchEmbedContents`. */
export function embedRequestSchema(method: EmbedMethod): JsonSchema {
  return requestSchema(REQUIRED[method], CHECKS[method])
}

/**
 * Checks a request. `model` is the model's name in the path. Throws `invalid_request` that names the field.
 */
export function readEmbedRequest(
  scan: ScannedObject,
  method: EmbedMethod,
  model: string,
): GeminiEmbedRequest {
  checkMembers(scan, REQUIRED[method], CHECKS[method])
  const contents = contentNodes(scan)
  const media = contents.map((content) => mediaIn(scan, GEMINI_EMBED_PROMPT_RULES, content, model))
  const excess = media.reduce((sum, one) => sum + one.excess, 0)
  return {
    promptBound: scan.bytes.length + contents.length * MESSAGE_TOKENS + excess,
    inputBounds: contents.map(
      (content, at) =>
        scan.endOf(content) - scan.startOf(content) + MESSAGE_TOKENS + (media[at]?.excess ?? 0),
    ),
    hasMedia: media.some(({ isAny }) => isAny),
  }
}

/** Finds the contents in a request of `embedContent` or `batchEmbedContents`. */
function contentNodes(scan: ScannedObject): Node[] {
  const single = scan.span('content')
  if (single) return [single.node]
  return requestNodes(scan).flatMap((request) => valueNodeOf(scan, request, 'content') ?? [])
}

/** Finds the requests in a list. */
function requestNodes(scan: ScannedObject): readonly Node[] {
  const requests = scan.span('requests')
  return requests ? scan.elements(requests.node) : []
}

/**
 * Reads the texts of a checked request, to convert it to another protocol. A title is dropped and reported.
 * Throws `invalid_request` for content that is not text, and if the requests of a list differ in anything but
 * their texts.
 */
export function decodeEmbedRequest(
  scan: ScannedObject,
  method: EmbedMethod,
  dropped: DroppedFields,
): TextsToEmbed {
  const single = method === 'embedContent'
  const requests = single
    ? [Object.fromEntries([...scan.members.keys()].map((key) => [key, scan.value(key)]))]
    : (scan.value('requests') as readonly Fields[])
  const read = requests.map((request, index) =>
    decodeOne(request, single ? '' : `requests[${index}].`, dropped),
  )
  const [first] = read
  for (const [index, { dimensions, task }] of read.entries()) {
    if (dimensions !== first?.dimensions)
      refuseField(`requests[${index}].outputDimensionality`, 'the same in all requests', 'another one')
    if (task !== first?.task)
      refuseField(`requests[${index}].taskType`, 'the same in all requests', 'another one')
  }
  return { texts: read.map(({ text }) => text), dimensions: first?.dimensions, task: first?.task }
}

function decodeOne(
  request: Fields,
  path: string,
  dropped: DroppedFields,
): Omit<TextsToEmbed, 'texts'> & { readonly text: string } {
  if (memberInEitherSpelling(request, 'title') !== undefined) dropped.add('title')
  const given = memberInEitherSpelling(asRecord(request['content']) ?? {}, 'parts') ?? []
  const parts = Array.isArray(given) ? (given as readonly unknown[]) : [given]
  const texts = parts.map((part, index) => {
    const text = asRecord(part)?.['text']
    const at = `${path}content.parts[${index}]`
    return typeof text === 'string' ? text : refuseField(at, 'a text', 'something else')
  })
  const text = texts.join('\n')
  if (text === '') refuseField(`${path}content`, 'a text that is not empty', 'an empty one')
  const dimensions = memberInEitherSpelling(request, 'outputDimensionality')
  const task = memberInEitherSpelling(request, 'taskType')
  return {
    text,
    dimensions:
      dimensions === undefined || Number.isSafeInteger(dimensions)
        ? (dimensions as number | undefined)
        : refuseField(`${path}outputDimensionality`, 'an integer', describeValueKind(dimensions)),
    task:
      task === undefined || typeof task === 'string'
        ? task
        : refuseField(`${path}taskType`, 'a string', describeValueKind(task)),
  }
}

function checkRequests(
  scan: ScannedObject,
  { key, node, count }: { key: string; node: Node; count: number },
): void {
  if (scan.kindOf(node) === 'array' && count === 0) refuseField(key, 'at least one request', 'an empty array')
  if (count > MAX_REQUESTS) refuseField(key, `at most ${MAX_REQUESTS} requests`, String(count))
  checkEachObject(scan, node, key, (request, path) => {
    const content = valueNodeOf(scan, request, 'content')
    if (content === undefined || scan.kindOf(content) !== 'object')
      refuseField(`${path()}.content`, 'an object', 'none')
  })
}

/**
 * Changes a request for an upstream that has another name for the model: each request in the list repeats the
 * model, and the upstream compares it with the path. All other bytes stay as the client wrote them.
 */
export function adaptEmbedRequest(
  scan: ScannedObject,
  upstreamModel: string,
  channel: UpstreamSettings,
  passThrough: boolean,
): EditedRequest {
  const name = JSON.stringify(modelResourceName(upstreamModel))
  const isOther = (model: Node): boolean => JSON.stringify(scan.parse(model)) !== name
  const model = scan.span('model')
  const requests = scan.span('requests')
  const changed =
    requests &&
    renderArray(scan, requests.node, (request): ElementChange => {
      const named = scan.memberOf(request, 'model')
      if (named === undefined || !isOther(named)) return 'stays'
      return { text: replaceMemberValue(scan, request, named, name) }
    })
  const replace = new Map<string, string>()
  if (model && isOther(model.node)) replace.set('model', name)
  if (changed !== undefined) replace.set('requests', changed)
  return editRequest(scan, channel, passThrough || channel.pass_through, { remove: [], replace })
}
