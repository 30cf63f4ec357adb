import type { z } from 'zod'
import type { AccountAccess } from '../access/account.ts'
import { addressBlock } from '../access/address-block.ts'
import type { ApiKeys } from '../access/api-key.ts'
import type { Caller } from '../access/caller.ts'
import type { ClientAddress } from '../access/client-address.ts'
import { sentKey } from '../access/sent-key.ts'
import type { Role, User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import { LIMIT_NAMES, type Limits } from '../limits/limits.ts'
import type { AdministrationParts } from '../management/parts.ts'
import { readInput } from '../management/read-input.ts'
import type { Bodies } from '../relay/body.ts'
import type { ModelLists } from '../relay/model-lists.ts'
import { idHeaders } from '../server/id-headers.ts'
import type { JsonEndpoint, Visit } from './endpoint.ts'
import { type Area, renderAnswer } from './envelopes.ts'
import type { GlobalLimit } from './global-limit.ts'
import { JSON_ROUTES } from './json-routes.ts'
import { MistypedPaths } from './mistyped-path.ts'
import type { PathParams } from './path-pattern.ts'
import { RAW_ROUTES } from './raw-routes.ts'
import { type FoundEndpoint, type OtherMethods, RouteTable } from './route-table.ts'
import { sendText } from './send-text.ts'
import { takeAndTell } from './take-and-tell.ts'

/** Bytes of a request body, unless its endpoint says otherwise; what is managed is small. */
const BODY_LIMIT = 1024 * 1024

const NEVER_CACHED = {
  'cache-control': 'no-store, no-cache, must-revalidate, private, max-age=0',
  pragma: 'no-cache',
  expires: '0',
}

/** What JSON endpoints are answered with. */
export interface JsonParts {
  readonly accounts: AccountAccess
  readonly apiKeys: ApiKeys
  readonly clientAddress: () => ClientAddress
  readonly limits: Limits
  readonly globalLimit: GlobalLimit
  readonly bodies: Bodies
  readonly management: AdministrationParts
  readonly models: ModelLists
}

type Handle = (asked: object) => Promise<unknown>

/** Answers JSON endpoints: limits, access, input by schema, and the envelope, the same for all of them. */
export class JsonDoor {
  readonly #routes = new RouteTable(JSON_ROUTES)
  readonly #mistyped = new MistypedPaths([...RAW_ROUTES, ...JSON_ROUTES])
  readonly #parts: JsonParts

  constructor(parts: JsonParts) {
    this.#parts = parts
  }

  /** The endpoint that is asked; undefined where nothing is at the path. */
  find(method: string, path: string): FoundEndpoint<JsonEndpoint> | OtherMethods | undefined {
    return this.#routes.find(method, path)
  }

  /** The path of the API that a wrong one probably stands for. */
  meant(path: string): string | undefined {
    return this.#mistyped.meant(path)
  }

  /** Rejects with what the caller is to be told. `area`: the endpoint's, for this request. */
  async answer(visit: Visit, endpoint: JsonEndpoint, area: Area, params: PathParams): Promise<void> {
    const { request, response } = visit
    const { management, clientAddress, globalLimit, limits, models } = this.#parts
    const { rateLimits } = management.settings()
    await globalLimit.take(request, response, endpoint.path)
    const who = await this.#enter(visit, endpoint)
    const takeFor = async (whom: string | number, whose: string): Promise<void> => {
      const { limit } = endpoint
      if (!limit) return
      await takeAndTell(limits, response, { name: LIMIT_NAMES[limit], whom, limit: rateLimits[limit] }, whose)
    }
    if (who.user) await takeFor(who.user.id, 'this user')
    else await takeFor(addressBlock(clientAddress()(request)), 'this address')
    const asked = {
      params: endpoint.params && readInput(endpoint.params, params),
      query: endpoint.query && readInput(endpoint.query, queryOf(request.url)),
      body: endpoint.body && (await this.#body(visit, endpoint, endpoint.body)),
    }
    if (endpoint.limitOn) await takeFor(`named ${endpoint.limitOn(asked.body as never)}`, 'this name')
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
    const body = renderAnswer(endpoint.envelope === 'own' ? 'relay' : endpoint.area, data)
    const length = String(body.length)
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': length, ...headers })
      .end(body)
  }

  async #enter(visit: Visit, endpoint: JsonEndpoint): Promise<{ user?: User }> {
    const { request, record } = visit
    const { access, tokenForm } = endpoint
    if (access === 'visitor') return {}
    if (access === 'key' || access === 'reading-key') return this.#enterByKey(visit, endpoint)
    const user = await this.#parts.accounts.authenticate(request, tokenForm ?? 'either', LEAST_ROLE[access])
    record.userId = user.id
    return { user }
  }

  async #enterByKey({ request, record }: Visit, { access, keyIn }: JsonEndpoint): Promise<Caller> {
    const { apiKeys, clientAddress } = this.#parts
    const key = sentKey(request, keyIn ?? 'bearer')
    const use = access === 'key' ? 'call' : 'read'
    const caller = await apiKeys.authenticate(key, clientAddress()(request), use)
    record.userId = caller.user.id
    record.tokenId = caller.token.id
    return caller
  }

  async #body(visit: Visit, endpoint: JsonEndpoint, schema: z.ZodType): Promise<unknown> {
    const address = this.#parts.clientAddress()(visit.request)
    const body = await this.#parts.bodies.read(visit, {
      client: addressBlock(address),
      limit: endpoint.bodyLimit ?? BODY_LIMIT,
      // Nothing is decoded for somebody who is not known yet.
      isPlain: endpoint.access === 'visitor',
    })
    try {
      return readInput(schema, parsed(body.bytes))
    } finally {
      body.release()
    }
  }
}

const LEAST_ROLE = { account: 1, admin: 10, root: 100 } as const satisfies Record<string, Role>

/** Of a parameter that is there twice, the first counts. */
function queryOf(url: string): Record<string, string> {
  const start = url.indexOf('?')
  if (start === -1) return {}
  return Object.fromEntries([...new URLSearchParams(url.slice(start))].toReversed())
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new GatewayError('invalid_json', `the request body is not JSON: ${reason}`)
  }
}
