import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import {
  hasForeignThoughts,
  hasOnlyMessages,
  inputForProvider,
  referredIds,
} from '../../protocols/responses/index.ts'
import type { Reader } from '../dialects/dialect.ts'
import { type Continued, findContinued } from './continued.ts'
import { withKeptItems } from './kept-items.ts'
import { findOrigin, type Origin } from './reasoning-origin.ts'
import { findItems, type ReferredItems } from './referred-items.ts'
import type { ResponseStore } from './response-store.ts'

/** Earlier responses that a request refers to. */
export interface Referred {
  /** The request refers to nothing, and its input has nothing but messages. */
  readonly isPlain?: true
  readonly continued?: Continued | undefined
  /** Items of responses that their provider keeps. */
  readonly items?: ReferredItems | undefined
  /** The account that made the encrypted reasoning in its input, or an item that it refers to. */
  readonly account?: Origin | undefined
  /** The request with all that the gateway keeps of what it refers to. */
  readonly composed?: ScannedObject | undefined
}

const PLAIN: Referred = { isPlain: true }
const NOTHING: Referred = {}

/**
 * Finds what a request refers to, at once where there is nothing to look up; `previousId` is the response
 * that it continues. Throws as `findContinued` and `withKeptItems` do.
 */
export function findReferred(
  scan: ScannedObject,
  previousId: string | undefined,
  reader: Reader,
  responses: ResponseStore,
): Promise<Referred> | Referred {
  if (previousId === undefined && hasOnlyMessages(scan)) return PLAIN
  // A continued response tells the account by itself.
  const origin = previousId === undefined ? findOrigin(scan, reader, responses) : undefined
  if (previousId === undefined && !origin && referredIds(scan).length === 0) return NOTHING
  return find()

  async function find(): Promise<Referred> {
    const continued =
      previousId === undefined ? undefined : await findContinued(scan, previousId, reader, responses)
    // A provider that is continued looks up the items, too.
    const whole =
      continued?.kind === 'native' ? scan : await withKeptItems(continued?.scan ?? scan, reader, responses)
    const items = await findItems(reader.caller.user.id, referredIds(whole), responses)
    const account = (await origin) ?? items?.responses[0]
    return { continued, account, items, composed: whole === scan ? undefined : whole }
  }
}

/** A request as a provider of responses understands it. */
export interface ForProvider {
  /** Members that differ from the client's, as JSON texts. */
  readonly replace: ReadonlyMap<string, string>
  /** Names of what is left out. */
  readonly dropped: readonly string[]
}

const UNCHANGED: ForProvider = { replace: new Map(), dropped: [] }

/** Translates a request for a provider of responses, which knows neither our ids nor thoughts of others. */
export function forProvider(scan: ScannedObject, { isPlain, continued, composed }: Referred): ForProvider {
  if (isPlain) return UNCHANGED
  const replace = new Map<string, string>()
  if (continued?.kind === 'native')
    replace.set('previous_response_id', JSON.stringify(continued.response.upstreamId))
  const whole = composed ?? scan
  const isForeign = hasForeignThoughts(whole)
  if (composed || isForeign) replace.set('input', inputForProvider(whole))
  return { replace, dropped: isForeign ? ['input.reasoning'] : [] }
}
