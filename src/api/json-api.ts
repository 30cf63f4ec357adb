import type { z } from 'zod'
import type { AccountAuthenticator } from '../auth/account-authenticator.ts'
import { addressBlock } from '../auth/address-block.ts'
import type { ApiKeys } from '../auth/api-keys.ts'
import type { Caller } from '../auth/caller.ts'
import type { ClientAddress } from '../auth/client-address.ts'
import { requireKey } from '../auth/sent-key.ts'
import type { Role, User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import { LIMIT_NAMES, type RateLimiter, requireAllowed } from '../limits/rate-limiter.ts'
import type { AdministrationParts } from '../management/parts.ts'
import { readInput } from '../management/read-input.ts'
import type { BodyReader } from '../relay/body-reader.ts'
import type { ModelLists } from '../relay/model-lists.ts'
import { idHeaders } from '../server/id-headers.ts'
import type { JsonEndpoint, SubjectLimit, ClientExchange } from './endpoint.ts'
import { type Area, renderSuccess } from './envelopes.ts'
import type { GlobalLimit } from './global-limit.ts'
import { JSON_ROUTES } from './json-routes.ts'
import { PathSuggestions } from './routing/mistyped-path.ts'
import type { PathParams } from './routing/path-pattern.ts'
import { RAW_ROUTES } from './raw-routes.ts'
import { type FoundEndpoint, type AllowedMethods, RouteTable } from './route-table.ts'
import { sendText } from './send-text.ts'
import { takeAndSetHeaders } from './rate-limit-headers.ts'

/** Bytes of a request body, unless its endpoint says otherwise; what is managed is small. */
const BODY_LIMIT = 1024 * 1024

const NEVER_CACHED = {
  'cache-control': 'no-store, no-cache, must-revalidate, private, max-age=0',
  pragma: 'no-cache',
  expires: '0',
}

/** What JSON endpoints are answered with. */
export interface JsonParts {
  readonly accounts: AccountAuthenticator
  readonly apiKeys: ApiKeys
  readonly clientAddress: () => ClientAddress
  readonly limits: RateLimiter
  readonly globalLimit: GlobalLimit
  readonly bodies: BodyReader
  readonly management: AdministrationParts
  readonly models: ModelLists
}

/** The same of somebody who is known by an id. */
type Limit = Omit<SubjectLimit, 'subject'> & { readonly subject: string | number }

type Handle = (asked: object) => Promise<unknown>

/** Answers JSON endpoints: limits, access, input by schema, and the envelope, the same for all of them. */
export class JsonApi {
  readonly #routes = new RouteTable(JSON_ROUTES)
  readonly #suggestions = new PathSuggestions([...RAW_ROUTES, ...JSON_ROUTES])
  readonly #parts: JsonParts

  constructor(parts: JsonParts) {
    this.#parts = parts
  }

  /** The endpoint that is asked; undefined where nothing is at the path. */
  find(method: string, path: string): FoundEndpoint<JsonEndpoint> | AllowedMethods | undefined {
    return this.#routes.find(method, path)
  }

  /** The path of the API that a wrong one probably stands for. */
  suggest(path: string): string | undefined {
    return this.#suggestions.suggest(path)
  }

  /** Rejects with what the caller is to be told. `area`: the endpoint's, for this request. */
  async respond(visit: ClientExchange, endpoint: JsonEndpoint, area: Area, params: PathParams): Promise<void> {
    const { request, response } = visit
    const { management, clientAddress, globalLimit, models } = this.#parts
    await globalLimit.take(request, response, endpoint.path)
    const who = await this.#authenticate(visit, endpoint)
    const from = addressBlock(clientAddress()(request))
    if (!endpoint.subjectLimits) {
      const limited = who.user
        ? { subject: who.user.id, label: 'this user' }
        : { subject: from, label: 'this address' }
      await this.#takeFromLimits(visit, endpoint, [{ ...limited, factor: 1 }])
    }
    const asked = {
      params: endpoint.params && readInput(endpoint.params, params),
      query: endpoint.query && readInput(endpoint.query, queryOf(request.url)),
      body: endpoint.body && (await this.#bodyWithinLimits(visit, endpoint, endpoint.body, from)),
      from,
    }
    const data = await (endpoint.handle as Handle)({
      ...who,
      ...asked,
      visit,
      parts: management,
      models,
    })
    const headers = {
      ...idHeaders(visit.id, area === 'messages'),
      ...(endpoint.cache === 'never' ? NEVER_CACHED : { 'cache-control': 'no-store' }),
    }
    if (endpoint.text) return sendText(response, endpoint.text, headers, data as AsyncIterable<string>)
    const body = renderSuccess(endpoint.envelope === 'own' ? 'relay' : endpoint.area, data)
    const length = String(body.length)
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': length, ...headers })
      .end(body)
  }

  async #authenticate(visit: ClientExchange, endpoint: JsonEndpoint): Promise<{ user?: User }> {
    const { request, record } = visit
    const { access, tokenForm } = endpoint
    if (access === 'visitor') return {}
    if (access === 'key' || access === 'reading-key') return this.#authenticateByKey(visit, endpoint)
    const user = await this.#parts.accounts.authenticate(request, tokenForm ?? 'either', MIN_ROLE[access])
    record.userId = user.id
    return { user }
  }

  async #authenticateByKey({ request, record }: ClientExchange, { access, keyIn }: JsonEndpoint): Promise<Caller> {
    const { apiKeys, clientAddress } = this.#parts
    const key = requireKey(request, keyIn ?? 'bearer')
    const use = access === 'key' ? 'call' : 'read'
    const caller = await apiKeys.authenticate(key, clientAddress()(request), use)
    record.userId = caller.user.id
    record.tokenId = caller.token.id
    return caller
  }

  /** Takes a request off each of the endpoint's limits; the caller is told what is left of the first. */
  async #takeFromLimits({ response }: ClientExchange, { limit }: JsonEndpoint, limited: readonly Limit[]): Promise<void> {
    if (!limit) return
    const { limits, management } = this.#parts
    const { requests, tokens, windowMs } = management.settings().rateLimits[limit]
    for (const [index, { subject, label, factor }] of limited.entries()) {
      const asked = {
        name: LIMIT_NAMES[limit],
        subject,
        limit: { requests: requests * factor, tokens, windowMs },
      }
      if (index === 0) await takeAndSetHeaders(limits, response, asked, label)
      else requireAllowed(await limits.take(asked), label)
    }
  }

  /**
   * The body, with what it names taken off the endpoint's limits, where it has such; of one that cannot be
   * read, the address.
   */
  async #bodyWithinLimits(visit: ClientExchange, endpoint: JsonEndpoint, schema: z.ZodType, from: string): Promise<unknown> {
    const { subjectLimits: limitsOn } = endpoint
    if (!limitsOn) return this.#body(visit, endpoint, schema)
    let body: unknown
    try {
      body = await this.#body(visit, endpoint, schema)
    } catch (error) {
      await this.#takeFromLimits(visit, endpoint, [{ subject: from, label: 'this address', factor: 1 }])
      throw error
    }
    await this.#takeFromLimits(visit, endpoint, limitsOn({ body: body as never, addressBlock: from, parts: this.#parts.management }))
    return body
  }

  async #body(visit: ClientExchange, endpoint: JsonEndpoint, schema: z.ZodType): Promise<unknown> {
    const address = this.#parts.clientAddress()(visit.request)
    const body = await this.#parts.bodies.read(visit, {
      client: addressBlock(address),
      limit: endpoint.bodyLimit ?? BODY_LIMIT,
      // Nothing is decoded for somebody who is not known yet.
      isPlain: endpoint.access === 'visitor',
    })
    try {
      return readInput(schema, parseJson(body.bytes))
    } finally {
      body.release()
    }
  }
}

const MIN_ROLE = { account: 1, admin: 10, root: 100 } as const satisfies Record<string, Role>

/** Of a parameter that is there twice, the first counts. */
function queryOf(url: string): Record<string, string> {
  const start = url.indexOf('?')
  if (start === -1) return {}
  return Object.fromEntries([...new URLSearchParams(url.slice(start))].toReversed())
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new GatewayError('invalid_json', `the request body is not JSON: ${reason}`)
  }
}
