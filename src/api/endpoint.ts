import type { z } from 'zod'
import type { TokenForm } from '../auth/account-authenticator.ts'
import type { Caller } from '../auth/caller.ts'
import type { KeyLocations } from '../auth/sent-key.ts'
import type { User } from '../domain/user.ts'
import type { AdministrationParts } from '../management/parts.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { JsonSchema } from '../protocols/accepting.ts'
import type { CallRecord } from '../relay/call.ts'
import type { ModelLists } from '../relay/model-lists.ts'
import type { Relay } from '../relay/relay.ts'
import type { Request } from '../server/request.ts'
import type { Response } from '../server/response.ts'
import type { Area } from './envelopes.ts'

/** What every endpoint says of itself; the route table is a list of these. */
interface EndpointDeclaration {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /**
   * Matched exactly, as the caller wrote it: no decoding, no dot segments. `:id` is one segment, `:id*` the
   * rest.
   */
  readonly path: string
  /** Which envelope its errors come in. */
  readonly area: Area
  /** One line, for people. */
  readonly summary: string
  /** Machines ask again and again: its requests are logged at debug. */
  readonly isPolled?: boolean
  /** A GET that changes or spends something: HEAD, which is safe by definition, is not served. */
  readonly hasEffect?: true
  /**
   * Statuses of errors of its own, beside those that follow from who may call it and what it takes; or that
   * there are none.
   */
  readonly errorStatuses?: readonly number[] | 'never'
}

/** What an endpoint that reads and answers by itself says of that, for the API's description. */
interface RawDescription {
  /** The schema of the JSON that it takes; nothing where it takes none. */
  readonly requestSchema?: () => JsonSchema
  /** The content types that it answers with; JSON where it does not say. */
  readonly contentTypes?: readonly string[]
  /** The status of its success; 200 where it does not say. */
  readonly status?: number
  /** Statuses of errors that it tells as plain text. */
  readonly textErrorStatuses?: readonly number[]
}

/** One request at an endpoint. */
export interface ClientExchange {
  /** Minted by us; sent as `x-request-id`. */
  readonly id: string
  /** Unix milliseconds. */
  readonly startedMs: number
  /**
   * The same moment by a clock that nobody sets, `performance.now()`: how long it took is measured from it.
   */
  readonly startedAt: number
  readonly request: Request
  readonly response: Response
  readonly record: CallRecord
}

/** For whoever brings an API key; reads and answers by itself, as the bytes are the caller's. */
export interface KeyEndpoint extends EndpointDeclaration, RawDescription {
  readonly kind: 'raw'
  readonly access: 'api-key'
  readonly keyIn: KeyLocations
  /** Statuses of upstreams' errors that it does not pass on, but makes good itself. */
  readonly hiddenStatuses?: readonly number[]
  handle(exchange: ClientExchange, caller: Caller, relay: Relay): Promise<void>
}

/** For everybody. */
export interface OpenEndpoint extends EndpointDeclaration, RawDescription {
  readonly kind: 'raw'
  readonly access: 'anyone'
  handle(exchange: ClientExchange, isReady: () => Promise<boolean>): void | Promise<void>
}

/**
 * For whoever watches over the gateway: callers on this machine, or bearers of `options.metrics_token` where
 * one is set.
 */
export interface OperatorEndpoint extends EndpointDeclaration, RawDescription {
  readonly kind: 'raw'
  readonly access: 'operator'
  handle(exchange: ClientExchange, metrics: Metrics): void
}

/** Who is let in, and what is known of them then. */
interface AccessPrincipals {
  /** Everybody. */
  readonly visitor: object
  /** An account holder; an admin (role 10) or root (role 100). */
  readonly account: { readonly user: User }
  readonly admin: { readonly user: User }
  readonly root: { readonly user: User }
  /** Whoever brings a live API key; or one whose time or quota may have run out. */
  readonly key: Caller
  readonly 'reading-key': Caller
}

/** The schemas of what comes with a request, each an object's; those that are not there are not looked at. */
interface Schemas<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
> {
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
}

/** What an endpoint is asked, read by its schemas; unknown where there is none. */
type HandlerInput<
  Access extends keyof AccessPrincipals,
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
> = AccessPrincipals[Access] & {
  readonly params: z.output<Params>
  readonly query: z.output<Query>
  readonly body: z.output<Body>
  /** The caller's address block. */
  readonly addressBlock: string
  readonly exchange: ClientExchange
  readonly parts: AdministrationParts
  readonly models: ModelLists
}

/** The facts that limits going by the body are given. */
export interface LimitInput<Body> {
  readonly body: Body
  /** The caller's address block. */
  readonly addressBlock: string
  readonly parts: AdministrationParts
}

/** The endpoint's limit, as it holds for somebody whom the body names. */
export interface LimitSubject {
  readonly subject: string
  /** Names it to callers: `this name`. */
  readonly label: string
  /** How many times as many requests it allows. */
  readonly factor: number
}

/** Text that is an answer. */
export interface TextFormat {
  /** Its content type. */
  readonly type: string
  /** The name that it is saved under, where it is for that. */
  readonly filename?: string
}

/** An endpoint that takes and gives JSON: it returns a value, and its area's envelope is put around it. */
export interface JsonEndpoint extends EndpointDeclaration, Schemas {
  readonly kind: 'json'
  readonly access: keyof AccessPrincipals
  /** How the access token may stand in `Authorization`; either way unless it says so. */
  readonly tokenForm?: TokenForm
  /** Where an API key may be; a bearer's unless it says so. */
  readonly keyIn?: KeyLocations
  /** Its area, where that depends on what was asked. */
  readonly areaOf?: (request: Request) => Area
  /** Bytes that its body may have; 1 MiB by default. Visitors' bodies come without a content encoding. */
  readonly bodyLimit?: number
  /** A limit per user (of visitors, per address), beside the one that holds for all of its area. */
  readonly limit?: 'search' | 'critical'
  /**
   * Limits by what the body names, in place of the one by address, which holds where the body cannot be read.
   */
  readonly limitSubjects?: (named: LimitInput<never>) => readonly LimitSubject[]
  /** It always fails: with what `fails` says, where nothing else is wrong. */
  readonly succeeds?: false
  /** Nothing on the way may keep the answer. */
  readonly cache?: 'never'
  /** What it answers with, inside the envelope; none = nothing. */
  readonly responseBody?: z.ZodType
  /** What it answers with has the fields of the envelope in it already. */
  readonly envelope?: 'own'
  /**
   * It answers with text instead, without an envelope: `handle` gives its pieces (`AsyncIterable<string>`).
   */
  readonly text?: TextFormat
  handle(asked: never): Promise<unknown>
}

/** A route: it does not build without saying how it authenticates. */
export type RawEndpoint = KeyEndpoint | OpenEndpoint | OperatorEndpoint

/** Any route. */
export type Endpoint = RawEndpoint | JsonEndpoint

/** Makes a JSON endpoint, whose `handle` is typed by its schemas. */
export function defineEndpoint<
  const Access extends keyof AccessPrincipals,
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
>(
  definition: Omit<JsonEndpoint, 'kind' | 'access' | 'handle' | 'subjectLimits' | keyof Schemas> &
    Schemas<Params, Query, Body> & {
      readonly access: Access
      readonly limitsOn?: (named: LimitInput<z.output<Body>>) => readonly LimitSubject[]
      handle(asked: HandlerInput<Access, Params, Query, Body>): Promise<unknown>
    },
): JsonEndpoint {
  return { kind: 'json', ...definition }
}
