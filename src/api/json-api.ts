import { createHash } from 'node:crypto'
import type { Response } from '@sluice/http1'
import { scanObject } from '@sluice/wire/json/json-scan'
import { z } from 'zod'
import type {
  AccountAuthenticator,
  AuthenticatedAccount,
  SessionAndUser,
} from '../accounts/authentication/account-authenticator.ts'
import { addressBlock } from '../accounts/authentication/address-block.ts'
import type { ApiKeys } from '../accounts/authentication/api-keys.ts'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { ClientAddress } from '../accounts/authentication/client-address.ts'
import { refuseRequestOfOtherSite } from '../accounts/authentication/refuse-cross-site.ts'
import { headerText, requireKey } from '../accounts/authentication/key-from-request.ts'
import type { ChangeOrigin } from '../domain/audit.ts'
import type { User } from '../domain/records/user.ts'
import { Role } from '../domain/role.ts'
import { GatewayError, invalidInput } from '../errors.ts'
import {
  LIMIT_NAMES,
  type RateLimiter,
  requireWithinRateLimit,
  type SubjectLimit,
} from '../limits/rate-limiter.ts'
import type { StoreReads } from '../limits/store-reads.ts'
import { storeWithReadLimits } from '../management/limit-reads.ts'
import type { AdministrationServices } from '../management/services.ts'
import { isRepeatable, readInput, requireFewValues } from '../management/input-fields.ts'
import { withAuditOrigin } from '../management/audit-origin.ts'
import { keyHeaderSchema, ownTokenNotFound } from '../management/tokens/token-object.ts'
import type { BodyReader } from '../call/body-reader.ts'
import type { ModelLists } from '../call/model-lists.ts'
import { answerHeaders } from '../http/answer-headers.ts'
import type { Request } from '../http/request.ts'
import { acceptedEncoding } from './compress-response.ts'
import type { ClientExchange, JsonEndpoint, LimitSubject } from './endpoint.ts'
import { type ApiArea, inEnvelope, protocolOf } from './envelopes.ts'
import { type GlobalLimit, isGloballyLimited, countRequestAndSetHeaders } from './global-limit.ts'
import { JSON_ROUTES } from './json-routes.ts'
import { RAW_ROUTES } from './raw-routes.ts'
import { type AllowedMethods, type FoundEndpoint, RouteTable } from './route-table.ts'
import { PathSuggestions } from './mistyped-path.ts'
import type { PathParams } from './paths.ts'
import { sendJsonText, sendJson, sendText } from './send-response.ts'

/** Maximum size of a request body in bytes, unless its endpoint declares another limit. */
const BODY_LIMIT = 1024 * 1024
/** Maximum number of values in the lists and objects of a body: a guard may have 10,000 words. */
const VALUE_LIMIT = 20_000

/**
 * Changes that an account below the administrators may make in 24 hours, or as many as it may have tokens if that is more.
 * `docs/security.md: Disk that one user can fill`.
 */
const CHANGES_A_DAY = 1000
const DAY_MS = 86_400_000

const NEVER_CACHED = {
  'cache-control': 'no-store, no-cache, must-revalidate, private, max-age=0',
  pragma: 'no-cache',
  expires: '0',
}

/** The services that JSON endpoints need. */
export interface JsonApiServices {
  readonly accounts: AccountAuthenticator
  readonly apiKeys: ApiKeys
  readonly clientAddress: () => ClientAddress
  readonly limits: RateLimiter
  readonly globalLimit: GlobalLimit
  readonly bodies: BodyReader
  readonly reads: StoreReads
  readonly management: AdministrationServices
  readonly models: ModelLists
}

/** A rate limit whose subject may be an address, a name, or the id of an account. */
type Limit = Omit<LimitSubject, 'subject'> & { readonly subject: string | number }

type Handle = (input: object) => Promise<unknown>

/**
 * Serves JSON endpoints. Rate limits, access, validation of input and envelopes are the same for all of them.
 */
export class JsonApi {
  readonly #routes = new RouteTable(JSON_ROUTES)
  readonly #suggestions = new PathSuggestions([...RAW_ROUTES, ...JSON_ROUTES])
  readonly #services: JsonApiServices

  constructor(services: JsonApiServices) {
    this.#services = services
  }

  /** Finds the endpoint of a request; undefined if no route has the path. */
  find(method: string, path: string): FoundEndpoint<JsonEndpoint> | AllowedMethods | undefined {
    return this.#routes.find(method, path)
  }

  /** Suggests the path of the API that was probably meant by a mistyped one. */
  suggest(path: string): string | undefined {
    return this.#suggestions.suggest(path)
  }

  /**
   * Returns the user and the API key that a request names in `Gateway-Key`; the key must belong to the
   * signed-in user. Rejects like a call with that key.
   */
  async ownCaller(request: Request): Promise<Caller> {
    const { accounts } = this.#services
    return this.#ownCaller(request, await accounts.session(request))
  }

  async #ownCaller(request: Request, session: SessionAndUser | undefined): Promise<Caller> {
    const { accounts, apiKeys, clientAddress, management } = this.#services
    const { user } = await accounts.authenticate(request, Role.user, session)
    const { 'Gateway-Key': id } = readInput(keyHeaderSchema, {
      'Gateway-Key': headerText(request, 'gateway-key') ?? '',
    })
    // Read without an entry in the audit log, because a call with the key reveals it to nobody.
    const key = await management.store.read('revealKey', { tokenId: id, userId: user.id })
    return apiKeys.authenticate(key === null ? ownTokenNotFound() : `sk-${key}`, clientAddress()(request))
  }

  /**
   * Checks limits, access and input of a request, calls the endpoint, and sends the response. Rejects with
   * the error for the client. `area` is the endpoint's area for this request.
   */
  async respond(
    exchange: ClientExchange,
    endpoint: JsonEndpoint,
    area: ApiArea,
    params: PathParams,
  ): Promise<void> {
    const { request, response } = exchange
    const { accounts, management, clientAddress, globalLimit, models } = this.#services
    const session = isGloballyLimited(endpoint.path) ? await accounts.session(request) : undefined
    if (session) await this.#takeFromConsole(exchange, session)
    else await globalLimit.take(request, response, endpoint.path)
    const principal = await this.#authenticate(exchange, endpoint, session)
    const address = clientAddress()(request)
    const block = addressBlock(address)
    // Searches in the console have already been counted against the console's own limit.
    const isCovered = session !== undefined && endpoint.limit === 'search'
    const { limitIf } = endpoint
    const query = queryOf(request.url)
    const counts = limitIf === undefined || limitIf(query)
    if (!endpoint.limitSubjects && counts && !isCovered) {
      const limited = principal.user
        ? { subject: principal.user.id, label: 'this user' }
        : { subject: block, label: 'this address' }
      await this.#takeFromLimits(exchange, endpoint, [{ ...limited, factor: 1 }])
    }
    const { body, bodyIf } = endpoint
    const schema = bodyIf ? (bodyIf.query(query) ? bodyIf.is : bodyIf.else) : body
    if (endpoint.method === 'DELETE' && endpoint.area === 'management')
      requireCertainQuery(endpoint, request.url)
    const input = {
      params: endpoint.params && readInput(endpoint.params, params),
      query: endpoint.query && readInput(endpoint.query, queryOf(request.url, endpoint.query)),
      body: schema && (await this.#bodyWithinLimits(exchange, endpoint, schema, block)),
      address,
      addressBlock: block,
      receive: (path: string) =>
        this.#services.bodies.readFile(exchange, path, {
          owner: { client: block, key: '' },
          limit: endpoint.upload ?? 0,
        }),
    }
    const { user } = principal
    const changes = user && endpoint.isLimitedDaily?.(input.body as never) ? this.#changesOf(user) : undefined
    if (changes)
      requireWithinRateLimit(
        await this.#services.limits.take(changes),
        `this user, ${changes.limit.tokens} changes in 24 hours,`,
      )
    const data = await (endpoint.handle as Handle)({
      ...principal,
      ...input,
      exchange,
      services: withAuditOrigin(
        meteredServices(this.#services, response, principal),
        originOf(principal, address, management.nowMs()),
      ),
      models,
      reauthenticate: async () =>
        void (await this.#authenticate(exchange, endpoint, await accounts.session(request))),
    })
    // What was refused has changed nothing.
    if (changes) this.#services.limits.spend(changes, 1)
    const headers = {
      ...answerHeaders(exchange.id, protocolOf(area)),
      ...(endpoint.cache === 'never' ? NEVER_CACHED : { 'cache-control': 'no-store' }),
    }
    if (endpoint.redirects) {
      response.writeHead(302, { location: String(data), 'content-length': '0', ...headers }).end()
      return
    }
    const encoding = endpoint.path.startsWith('/api/') ? acceptedEncoding(request) : undefined
    if (endpoint.text && isText(endpoint, data)) {
      const { filename } = endpoint.text
      const name =
        typeof filename === 'function' ? filename(input.query as never, management.nowMs()) : filename
      return sendText(response, { ...endpoint.text, filename: name }, headers, data, encoding)
    }
    if (data instanceof Buffer) return sendJsonText(response, headers, data, encoding)
    const tag = endpoint.tagged && tagOf(endpoint.tagged(data as never))
    if (tag !== undefined && headerText(request, 'if-none-match') === tag) {
      response.writeHead(304, { etag: tag, vary: 'accept-encoding', ...headers }).end()
      return
    }
    return sendJson(
      response,
      tag === undefined ? headers : { etag: tag, ...headers },
      inEnvelope(endpoint.envelope === 'own' ? 'relay' : endpoint.area, data),
      encoding,
    )
  }

  /**
   * Counts a request of the console against the rate limit of its user. The console has this limit instead of
   * the limits `global` and `search`.
   */
  async #takeFromConsole({ response }: ClientExchange, { user }: SessionAndUser): Promise<void> {
    const { limits, management } = this.#services
    const limit = management.settings().rateLimits.console
    const limited = { name: LIMIT_NAMES.console, subject: user.id, limit }
    await countRequestAndSetHeaders(limits, response, limited, 'this user in the console')
  }

  /** The limit on a user's changes, which are counted once they are made; undefined for administrators. */
  #changesOf({ id, role }: User): SubjectLimit | undefined {
    if (role >= Role.admin) return undefined
    const { max_user_tokens: maxTokens } = this.#services.management.settings().options
    const limit = { requests: 0, tokens: Math.max(CHANGES_A_DAY, maxTokens), windowMs: DAY_MS }
    return { name: LIMIT_NAMES.changes, subject: id, limit }
  }

  async #authenticate(
    exchange: ClientExchange,
    endpoint: JsonEndpoint,
    session: SessionAndUser | undefined,
  ): Promise<Partial<AuthenticatedAccount>> {
    const { request, record } = exchange
    const { access } = endpoint
    if (access === 'visitor') return {}
    if (access === 'key' || access === 'reading-key') return this.#authenticateByKey(exchange, endpoint)
    if (access === 'keyed-account') {
      const caller = await this.#ownCaller(request, session)
      record.userId = caller.user.id
      record.tokenId = caller.token.id
      return caller
    }
    if (endpoint.hasEffect) refuseRequestOfOtherSite(request)
    const authenticated = await this.#services.accounts.authenticate(request, MIN_ROLE[access], session)
    record.userId = authenticated.user.id
    return authenticated
  }

  async #authenticateByKey(
    { request, record }: ClientExchange,
    { access, keyIn }: JsonEndpoint,
  ): Promise<Caller> {
    const { apiKeys, clientAddress } = this.#services
    const key = requireKey(request, keyIn ?? 'bearer')
    const use = access === 'key' ? 'call' : 'read'
    const caller = await apiKeys.authenticate(key, clientAddress()(request), use)
    record.userId = caller.user.id
    record.tokenId = caller.token.id
    return caller
  }

  /**
   * Counts a request against each of the endpoint's limits. The response headers state what remains of the
   * first one.
   */
  async #takeFromLimits(
    { response }: ClientExchange,
    { limit }: JsonEndpoint,
    limited: readonly Limit[],
  ): Promise<void> {
    if (!limit) return
    const { limits, management } = this.#services
    const { requests, tokens, windowMs } = management.settings().rateLimits[limit]
    for (const [index, { subject, label, factor }] of limited.entries()) {
      const subjectLimit = {
        name: LIMIT_NAMES[limit],
        subject,
        limit: { requests: requests * factor, tokens, windowMs },
      }
      if (index === 0) await countRequestAndSetHeaders(limits, response, subjectLimit, label)
      else requireWithinRateLimit(await limits.take(subjectLimit), label)
    }
  }

  /**
   * Reads the body, and counts the request against the limits of the users or names in it; if the body cannot
   * be read, against the limit of the address.
   */
  async #bodyWithinLimits(
    exchange: ClientExchange,
    endpoint: JsonEndpoint,
    schema: z.ZodType,
    block: string,
  ): Promise<unknown> {
    const { limitSubjects } = endpoint
    if (!limitSubjects) return this.#body(exchange, endpoint, schema)
    let body: unknown
    try {
      body = await this.#body(exchange, endpoint, schema)
    } catch (error) {
      await this.#takeFromLimits(exchange, endpoint, [{ subject: block, label: 'this address', factor: 1 }])
      throw error
    }
    await this.#takeFromLimits(
      exchange,
      endpoint,
      limitSubjects({ body: body as never, addressBlock: block, services: this.#services.management }),
    )
    return body
  }

  async #body(exchange: ClientExchange, endpoint: JsonEndpoint, schema: z.ZodType): Promise<unknown> {
    const address = this.#services.clientAddress()(exchange.request)
    const body = await this.#services.bodies.read(exchange, {
      owner: { client: addressBlock(address), key: '' },
      limit: endpoint.bodyLimit ?? BODY_LIMIT,
      // Compressed bodies are refused from clients that are not authenticated.
      isPlain: endpoint.access === 'visitor',
    })
    try {
      const parsed = parseJson(body.bytes)
      requireFewValues(parsed, VALUE_LIMIT)
      const given = readInput(schema, parsed)
      if (endpoint.deletes?.(given as never)) {
        requireCertainQuery(endpoint, exchange.request.url)
        requireCertainBody(schema, body.bytes)
      }
      return given
    } finally {
      body.release()
    }
  }
}

/** The entity tag of a value. It is weak, because responses with it may be compressed. */
function tagOf(value: object): string {
  return `W/"${createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22)}"`
}

// An endpoint with a response schema returns text only if the request asked for it.
function isText({ responseBody }: JsonEndpoint, data: unknown): data is AsyncIterable<string> {
  return !responseBody || (typeof data === 'object' && data !== null && Symbol.asyncIterator in data)
}

const MIN_ROLE = { account: Role.user, admin: Role.admin, root: Role.root } as const

/**
 * The parameters of the query. If a parameter is repeated, all its values are returned if the schema accepts
 * several; otherwise only the first one.
 */
export function queryOf(url: string, schema?: z.ZodType): Record<string, string | string[]> {
  const start = url.indexOf('?')
  if (start === -1) return {}
  const given = Map.groupBy(new URLSearchParams(url.slice(start)), ([name]) => name)
  const fields = fieldsOf(schema)
  return Object.fromEntries(
    Array.from(given, ([name, pairs]) => {
      const values = pairs.map(([, value]) => value)
      const mayRepeat = Object.hasOwn(fields, name) && isRepeatable(fields[name])
      return [name, values.length > 1 && mayRepeat ? values : (values[0] ?? '')]
    }),
  )
}

/** Refuses a query from which it is not certain what is to be deleted. `docs/api.md: Endpoints`. */
function requireCertainQuery({ query }: JsonEndpoint, url: string): void {
  const start = url.indexOf('?')
  if (start === -1) return
  const known = fieldsOf(query)
  requireCertain([...new URLSearchParams(url.slice(start))], known, (name) => isRepeatable(known[name]))
}

/** Refuses a body from which it is not certain what is to be deleted. */
function requireCertainBody(schema: z.ZodType, bytes: Buffer): void {
  // Refuses repeated members, of which `JSON.parse` would take the last.
  const scan = scanObject(bytes)
  const members = scan.entries(scan.root).map(({ key, node }) => [key, scan.parse(node)] as const)
  requireCertain(members, fieldsOf(schema), () => false)
}

/**
 * Refuses parameters or members that are unknown, empty or repeated, because more than was meant would be deleted
 * without them.
 */
function requireCertain(
  given: readonly (readonly [name: string, value: unknown])[],
  known: Readonly<Record<string, unknown>>,
  mayRepeat: (name: string) => boolean,
): void {
  const found = new Set<string>()
  for (const [name, value] of given) {
    if (!Object.hasOwn(known, name)) throw invalidInput([`${name}: unknown parameter`])
    if (value === '') throw invalidInput([`${name}: expected a value`])
    if (found.has(name) && !mayRepeat(name)) throw invalidInput([`${name}: expected one value, not several`])
    found.add(name)
  }
}

function fieldsOf(schema: z.ZodType | undefined): Readonly<Record<string, unknown>> {
  return schema instanceof z.ZodObject ? schema.shape : {}
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new GatewayError('invalid_json', `the request body is not JSON: ${reason}`)
  }
}

/**
 * Who made the changes of a request, for the audit log. Changes without a user can only come from sessions of
 * the console.
 */
function originOf(
  { user, sessionHash }: Partial<AuthenticatedAccount>,
  address: string,
  atMs: number,
): ChangeOrigin {
  const via = user && sessionHash === undefined ? 'api' : 'console'
  return { actorId: user?.id ?? 0, actor: user?.username ?? '', via, address, atMs }
}

/**
 * The services for one request. What a signed-in user's request reads from the database counts against the
 * user's share of memory until the response has been written. Visitors read single rows only, which are not
 * counted.
 */
function meteredServices(
  { management, reads }: { readonly management: AdministrationServices; readonly reads: StoreReads },
  response: Response,
  { user }: Partial<AuthenticatedAccount>,
): AdministrationServices {
  if (!user) return management
  const reading = reads.of(user.id)
  response.onClosed(() => reading.end())
  // If the response was aborted before the listener was added, the listener is never called.
  if (response.isAborted) reading.end()
  const holdToRead: AdministrationServices['holdToRead'] = async (bytes, mostMs) => {
    await reading.begin()
    await reading.hold(bytes, 'contents', mostMs)
    return () => reading.give(bytes)
  }
  const { store, endReads } = storeWithReadLimits(management.store, reading)
  return { ...management, store, holdToRead, endReads }
}
