import type { User } from '../../domain/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'

/** The user of that id or name; `not_found` if there is none. */
export async function findUser(store: Store, who: number | string): Promise<User> {
  const user = await (typeof who === 'number' ? store.read('userById', who) : store.read('userByName', who))
  return user ?? noUser(who)
}

/** Says that there is no such user. */
export function noUser(who: number | string): never {
  const named = typeof who === 'number' ? `with the id ${who}` : `"${who}"`
  throw new GatewayError('not_found', `there is no user ${named}`)
}
