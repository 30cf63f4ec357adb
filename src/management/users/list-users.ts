import { z } from 'zod'
import { type ManagedUser, type User, USER_ORDERS } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import { type Actor, requireManageableUser } from '../authority.ts'
import {
  offsetOf,
  orderOfQuery,
  orderQuery,
  pageObject,
  pageOfQuery,
  pageQuery,
  pageSchema,
} from '../page.ts'
import { readInput, userInput } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import {
  managedUserObject,
  type ManagedUserObject,
  managedUserObjects,
  managedUserSchema,
  type UserObject,
  userObjects,
} from './user-object.ts'

/** Query parameters for a page of users. */
export const userPageQuery = pageQuery.extend(orderQuery(USER_ORDERS).shape)

/** Query parameters of a search for users; without any, it finds all users. */
export const userSearchInput = userPageQuery.extend({
  keyword: z.string().max(2000, { error: 'expected at most 2000 characters' }).optional(),
  group: z.string().max(2000, { error: 'expected at most 2000 characters' }).optional(),
})

export const userPageSchema = pageSchema(managedUserSchema)

/**
 * Users of a group, by default the newest first. `keyword` is an id, or a part of a name or of the e-mail
 * address.
 */
export async function findUsers(
  services: ManagementServices,
  query: z.output<typeof userSearchInput>,
): Promise<z.output<typeof userPageSchema>> {
  const page = pageOfQuery(query)
  const { users, total } = await services.store.read('pageOfUsers', {
    keyword: query.keyword?.trim() ?? '',
    group: query.group || undefined,
    offset: offsetOf(page),
    limit: page.pageSize,
    order: orderOfQuery(query),
  })
  const items = await managedUserObjects(services, users)
  return pageObject(page, total, items)
}

/** All users, the oldest first. */
export async function listUsers(services: ManagementServices): Promise<UserObject[]> {
  return userObjects(services, await services.store.read('listUsers'))
}

/** A user as administrators see it, by id or name. */
export async function showUser(
  services: ManagementServices,
  given: z.input<typeof userInput>,
): Promise<ManagedUserObject> {
  const { user: idOrName } = readInput(userInput, given)
  const { id: userId } = await findUser(services.store, idOrName)
  const user = await services.store.read('managedUser', { userId })
  return managedUserObject(services, user ?? userNotFound(idOrName))
}

/** The user with this id or name. Throws `not_found` if there is none. */
export async function findUser(store: Pick<Store, 'read'>, idOrName: number | string): Promise<User> {
  const user = await (typeof idOrName === 'number'
    ? store.read('userById', idOrName)
    : store.read('userByName', idOrName))
  return user ?? userNotFound(idOrName)
}

/** Throws the error `not_found` for a user. */
export function userNotFound(idOrName: number | string): never {
  const named = typeof idOrName === 'number' ? `with the id ${idOrName}` : `"${idOrName}"`
  throw new GatewayError('not_found', `there is no user ${named}`)
}

/** The user with this id. Throws if the user's role is not below the actor's; root may manage every user. */
export async function manageableUser(
  { store }: Pick<ManagementServices, 'store'>,
  userId: number,
  by: Actor,
): Promise<ManagedUser> {
  const user = (await store.read('managedUser', { userId })) ?? userNotFound(userId)
  requireManageableUser(by, user)
  return user
}
