import { canonicalDigest } from '@sluice/wire/canonical-request'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { CacheOptions } from '../../domain/options.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Headers } from '../../http/request.ts'
import type { AdmittedRequest } from '../../call/answer-request.ts'
import type { AnswerStorageRules } from '../../call/dialects/answer-storage-rules.ts'
import type { DialectFacts } from '../../call/dialects/dialect-facts.ts'
import type { ParsedRequest } from '../../call/request-stages.ts'
import type { BodyForm, RequestedBodyForm } from './answer-bodies.ts'
import { type CacheControl, readCacheControl } from './cache-control.ts'
import { configurationVersion } from './configuration-version.ts'

/** A call whose answer may be kept, or shared with equal calls. */
export interface SharableCall extends AdmittedRequest {
  readonly options: CacheOptions
  readonly rules: AnswerStorageRules
  readonly control: CacheControl
  /** The model as it is routed: the successor of the requested model, if that has taken its place. */
  readonly model: string
  readonly wanted: RequestedBodyForm
  /** Time for which the answer is kept, in milliseconds. */
  readonly ttlMs: number
  /** HMAC that is the same for equal calls. */
  readonly lookup: string
}

/** Members that do not count, but that a response repeats of its request; with their defaults as JSON texts. */
const REPEATED = { metadata: '{}', prompt_cache_key: 'null' }

/**
 * Members of a body that may differ between equal requests. The model is compared after routing; the other
 * members only determine the form of the answer, the user or the session.
 */
const UNCOUNTED: ReadonlySet<string> = new Set([
  ...Object.keys(REPEATED),
  'model',
  'session_id',
  'stream',
  'stream_options',
])

/** Headers that are forwarded to the upstream and therefore must be equal. */
const COUNTED_HEADERS = ['anthropic-beta', 'anthropic-version', 'vendor-version'] as const

/**
 * Returns the call if its answer may be shared; otherwise undefined. `tag` computes an HMAC with the
 * gateway's secret.
 */
export function sharableCall(
  admitted: AdmittedRequest,
  headers: Headers,
  tag: (text: string) => string,
): SharableCall | undefined {
  const { settings, caller, request, dialect, routes } = admitted
  const { cache: options } = settings.options
  const { json } = request
  const [first] = routes.resolutions
  if (!options || !json || !first || request.charging === 'free') return undefined
  const { scan } = json
  const rules = json.dialect.keeping?.(scan)
  if (!rules) return undefined
  const control = readCacheControl(headers['cache-control'])
  if (control.noStore) return undefined
  const isFallback = first.name !== request.model && routes.requestedModel.fallback.includes(first.name)
  if (isFallback || (rules.mayBeStored && mayStore(settings, first.channels))) return undefined
  const ttlMs = ttlOf(options, first.model.cache, control.maxAgeMs)
  if (ttlMs === 0) return undefined
  const { token, user } = caller
  const owner = { token: token.id, user: user.id, group: first.group.name }[options.scope]
  const key = [
    [options.scope, owner, first.group.name],
    [dialect.name, rules.endpoint, first.name],
    [configurationVersion(settings), first.model.priceMoment ?? ''],
    admitted.decisions?.answerDependsOn ?? [],
    [
      canonicalDigest(scan, json.dialect.shape, UNCOUNTED).toString('base64'),
      ...COUNTED_HEADERS.map((name) => headers[name] ?? ''),
    ],
  ]
  return {
    ...admitted,
    options,
    rules,
    control,
    model: first.name,
    ttlMs,
    wanted: {
      form: formOf(dialect, request),
      includeUsage: rules.hasUsageOption === true && includesUsage(scan),
      ...(rules.hasOwnIds && { repeated: repeatedIn(scan) }),
    },
    lookup: tag(JSON.stringify(key)),
  }
}

function repeatedIn(scan: ScannedObject): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(REPEATED).map(([name, usual]) => {
      const span = scan.span(name)
      return [name, span && scan.kindOf(span.node) !== 'null' ? scan.textOf(span.node) : usual]
    }),
  )
}

function formOf({ streamType }: DialectFacts, { stream }: ParsedRequest): BodyForm {
  if (!stream) return 'whole'
  return streamType === undefined ? 'events' : 'array'
}

/** Whether a channel or the gateway may store a response whose request does not forbid it. */
function mayStore({ options }: Settings, channels: readonly Channel[]): boolean {
  return (
    options.keep_responses > 0 ||
    channels.some(({ protocol, disable_store }) => protocol.includes('responses') && !disable_store)
  )
}

/**
 * Time for which an answer is kept, in milliseconds; 0 if it is not. A model with the time 0 is excluded from
 * the cache.
 */
function ttlOf(
  { ttl, max_ttl }: CacheOptions,
  ofModel: number | undefined,
  maxAgeMs: number | undefined,
): number {
  const usual = ofModel ?? ttl
  if (usual > 0 || ofModel === 0) return usual
  return Math.min(maxAgeMs ?? 0, max_ttl)
}

function includesUsage(scan: ScannedObject): boolean {
  const options = scan.span('stream_options')
  if (!options || scan.kindOf(options.node) !== 'object') return false
  const node = scan.memberOf(options.node, 'include_usage')
  return node !== undefined && scan.kindOf(node) === 'true'
}
