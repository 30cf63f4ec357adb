import type { Caller } from '../accounts/authentication/caller.ts'
import type { Settings } from '../domain/settings.ts'
import type { Headers } from '../http/request.ts'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { regionName, requestedTier } from '@sluice/wire/service-tier'
import { isForm } from '@sluice/wire/multipart'
import type { Body, BodyOptions, BodyReader, FormBody } from './body-reader.ts'
import type { Dialect, FormDialect, RequestReaderContext } from './dialects/dialect.ts'
import { namedSessionFinder, sessionFinder } from './session.ts'
import { cacheLifetimesInRequest } from './cache-lifetimes.ts'
import type { ParsedRequest } from './request-stages.ts'
import type { IncomingCall } from './incoming-call.ts'

/** The dialects of an endpoint: of its JSON bodies, of its forms, or of both. */
export type EndpointDialects =
  | { readonly json: Dialect; readonly form?: FormDialect }
  | { readonly json?: undefined; readonly form: FormDialect }

/** Returns the limits within which the body of a caller's request is read. */
export function bodyOptions({ token, user }: Caller, { options }: Settings): BodyOptions {
  return { owner: { client: user.id, key: token.id }, limit: options.body_limit }
}

/**
 * Reads the body of a request, as JSON or as a form. Returns a promise, unless a JSON body has arrived completely. Throws
 * or rejects with the error for the client.
 */
export function readBody(
  bodies: BodyReader,
  { json, form }: EndpointDialects,
  incoming: IncomingCall,
  options: BodyOptions,
): Body | Promise<Body | FormBody> {
  const readsForm = form && (!json || isForm(incoming.request.headers['content-type']))
  return readsForm ? bodies.readForm(incoming, options) : bodies.read(incoming, options)
}

/** A request in JSON. All who read it share its scan, and with it the outline. */
export interface JsonRequest {
  readonly dialect: Dialect
  readonly body: Body
  readonly scan: ScannedObject
}

/** A request that is a form. */
export interface FormRequest {
  readonly dialect: FormDialect
  readonly body: FormBody
  readonly scan?: undefined
}

/** Scans the body of a request and selects its dialect. Throws `invalid_json` if a body is not a JSON object. */
export function scanRequest(
  { json, form }: EndpointDialects,
  body: Body | FormBody,
): JsonRequest | FormRequest {
  if ('parts' in body) return { dialect: form as FormDialect, body }
  const usual = json as Dialect
  const scan = scanObject(body.bytes, usual.scanLimits)
  return { dialect: usual.ofForm?.(scan) ?? usual, body, scan }
}

/** Checks a request. Rejects with `invalid_request` that names the field. */
export async function parseRequest(
  request: JsonRequest | FormRequest,
  headers: Headers,
  reader: RequestReaderContext,
): Promise<ParsedRequest> {
  if (!request.scan) {
    const { dialect, body } = request
    for (const { name } of body.parts) dialect.names.checkName(name)
    const session = namedSessionFinder(headers)
    return withFacts(await dialect.read(body, reader), session ? { session } : {})
  }
  const { scan, dialect } = request
  dialect.names.check(scan)
  const member = (name: string): unknown => (scan.has(name) ? scan.value(name) : undefined)
  const serviceTier = requestedTier(member)
  const region = regionName(member('inference_geo'))
  const { conversation, shape } = dialect
  // No provider writes other requests to a prompt cache, such as those for embeddings.
  const mayBeCached = conversation !== undefined || 'Mark' in shape.tables
  const lifetimes = mayBeCached ? cacheLifetimesInRequest(scan, shape) : []
  const session = conversation
    ? sessionFinder(headers, scan, conversation)
    : namedSessionFinder(headers, scan)
  const requested = (serviceTier !== undefined || region !== undefined || lifetimes.length > 0) && {
    ...(serviceTier !== undefined && { serviceTier }),
    ...(region !== undefined && { region }),
    ...(lifetimes.length > 0 && { lifetimes }),
  }
  const facts = { json: request, ...(requested && { requested }), ...(session && { session }) }
  return withFacts(await dialect.read(scan, headers, reader), facts)
}

/**
 * The model that a request names, also if other fields are wrong; undefined if the configuration does not name it, because any
 * text may stand there.
 */
export function namedModel(
  { dialect, body, scan }: JsonRequest | FormRequest,
  { models, channels }: Settings,
): string | undefined {
  const named =
    'parts' in body
      ? body.parts.find(({ name }) => name === 'model')?.text
      : (dialect.pathModel ?? (scan?.has('model') && scan.value('model')))
  const isNamed = (name: unknown): name is string =>
    channels.some((channel) => channel.models.some((one) => one === name)) ||
    models.declared.some((one) => one === name)
  return isNamed(named) ? named : undefined
}

function withFacts(
  request: ParsedRequest,
  facts: Pick<ParsedRequest, 'json' | 'requested' | 'session'>,
): ParsedRequest {
  return {
    ...request,
    ...facts,
    ...(request.requested && { requested: { ...facts.requested, ...request.requested } }),
    ...(request.session && { session: request.session }),
    ...(request.forModel && {
      forModel: (name: string) => withFacts(request.forModel?.(name) ?? request, facts),
    }),
  }
}

/** Suffixes with which routers select other providers and prices, or search the web for an extra price. */
const SUFFIXES = [':online', ':nitro', ':floor'] as const

/**
 * Removes suffixes by which OpenRouter chooses a provider or a price (`:online`, `:nitro`) from the model's
 * name, and lists them in `x-gateway-dropped`. Returns the request unchanged if a channel serves a model with
 * the suffix in its name, or if the request cannot be sent for another model. `docs/api.md: Other models and
 * prices`.
 */
export function withoutModelSuffix(request: ParsedRequest, { channels }: Settings): ParsedRequest {
  const dropped: string[] = []
  let name = request.model
  for (;;) {
    const suffix = SUFFIXES.find((one) => name.endsWith(one))
    if (suffix === undefined || channels.some(({ models }) => models.includes(name))) break
    name = name.slice(0, -suffix.length)
    dropped.unshift(suffix)
  }
  const plain = dropped.length > 0 ? request.forModel?.(name) : undefined
  return plain ? withDropped(plain, dropped) : request
}

function withDropped(request: ParsedRequest, dropped: readonly string[]): ParsedRequest {
  return {
    ...request,
    dropped,
    forModel: (name) => withDropped(request.forModel?.(name) ?? request, dropped),
  }
}
