import type { User } from '../../domain/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'

/** The user of that id or name; `not_found` if there is none. */
export async function findUser(store: Store, idOrName: number | string): Promise<User> {
  const user = await (typeof idOrName === 'number' ? store.read('userById', idOrName) : store.read('userByName', idOrName))
  return user ?? noUser(idOrName)
}

/** Says that there is no such user. */
export function noUser(idOrName: number | string): never {
  const named = typeof idOrName === 'number' ? `with the id ${idOrName}` : `"${idOrName}"`
  throw new GatewayError('not_found', `there is no user ${named}`)
}
