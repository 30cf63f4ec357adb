import { z } from 'zod'
import { TOKEN_STATUS } from '../../domain/records/token.ts'
import { KEY_END_LENGTH } from '../../store/secrets.ts'
import type { Store } from '../../store/store.ts'
import { type Actor, OPERATOR, roleCeiling } from '../authority.ts'
import { equalityFilterField, readInput } from '../input-fields.ts'
import { offsetOf, orderOfQuery, pageObject, pageOfQuery, pageSchema } from '../page.ts'
import type { ManagementServices } from '../services.ts'
import { tokenPageQuery } from './list-tokens.ts'
import { tokensOfUsers, tokenOfUserSchema } from './token-object.ts'

const STATUSES: readonly number[] = Object.values(TOKEN_STATUS)
const STATUS = 'expected 1 (enabled), 2 (disabled), 3 (expired) or 4 (exhausted)'
const END = `expected the last ${KEY_END_LENGTH} characters of a key`

/** Query parameters of a search among the tokens of all users; an empty parameter counts as missing. */
export const allTokensQuery = tokenPageQuery.extend({
  keyword: equalityFilterField().describe('a part of the name'),
  user: equalityFilterField().describe("the user's id, or a part of its name"),
  group: equalityFilterField().describe('the group that the calls of the token use'),
  status: z
    .string()
    .refine((text) => text === '' || STATUSES.includes(Number(text)), { error: STATUS })
    .meta({ enum: STATUSES.map(String) })
    .transform((text) => (text === '' ? undefined : (Number(text) as 1 | 2 | 3 | 4)))
    .optional(),
  last4: z
    .string()
    .regex(/^(?:.{4})?$/u, { error: END })
    .transform((text) => text || undefined)
    .optional(),
})

/** A page of tokens of several users. */
export const allTokensSchema = pageSchema(tokenOfUserSchema)

/**
 * The tokens that match, by default the newest first, of users whose role is below the actor's, and the actor's own; for
 * root those of all users.
 */
export async function allTokens(
  services: Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>,
  query: z.output<typeof allTokensQuery>,
  by: Actor,
): Promise<z.output<typeof allTokensSchema>> {
  const { store, nowMs } = services
  const { keyword, user, group, status, last4 } = query
  if (last4 !== undefined) await findableByEnd(store)
  const page = pageOfQuery(query)
  const role = roleCeiling(by)
  const { total, ids } = await store.read('matchingTokens', {
    name: keyword,
    user,
    group,
    status,
    end: last4,
    within: role === undefined ? undefined : { role, self: by.id },
    offset: offsetOf(page),
    limit: page.pageSize,
    order: orderOfQuery(query),
    nowMs: nowMs(),
  })
  const tokens = await store.read('tokensWithOwners', { tokenIds: ids })
  return pageObject(page, total, await tokensOfUsers(services, tokens))
}

/** The tokens of all users that match, a page of them, for an operator. */
export function listAllTokens(
  services: ManagementServices,
  given: z.input<typeof allTokensQuery>,
): Promise<z.output<typeof allTokensSchema>> {
  return allTokens(services, readInput(allTokensQuery, given), OPERATOR)
}

/** Makes keys that an earlier version stored findable by their last characters. Later it has nothing to do. */
export async function findableByEnd(store: Pick<Store, 'write'>): Promise<void> {
  while (await store.write('tagKeyEnds', {}));
}
