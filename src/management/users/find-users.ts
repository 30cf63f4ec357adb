import { z } from 'zod'
import { offsetOf, pageOf, pageQuery, pageSchema } from '../page.ts'
import type { ManagementParts } from '../parts.ts'
import { managedUserObjects, managedUserSchema } from './profile-object.ts'
import { type UserObject, userObjects } from './user-object.ts'

/** A search for users; without parameters it finds all of them. */
export const userSearchInput = pageQuery.extend({
  keyword: z.string().max(2000, { error: 'expected at most 2000 characters' }).optional(),
  group: z.string().max(2000, { error: 'expected at most 2000 characters' }).optional(),
})

/** A page of users. */
export const userPageSchema = pageSchema(managedUserSchema)

/**
 * Users of a group, newest first, with `keyword` as their id or as a part of a name or the e-mail address.
 */
export async function findUsers(
  parts: ManagementParts,
  query: z.output<typeof userSearchInput>,
): Promise<z.output<typeof userPageSchema>> {
  const page = pageOf(query)
  const { users, total } = await parts.store.read('pageOfUsers', {
    keyword: query.keyword?.trim() ?? '',
    group: query.group || undefined,
    offset: offsetOf(page),
    limit: page.pageSize,
  })
  const items = await managedUserObjects(parts, users)
  return { page: page.page, page_size: page.pageSize, total, items }
}

/** All users, oldest first. */
export async function listUsers(parts: ManagementParts): Promise<UserObject[]> {
  return userObjects(parts, await parts.store.read('listUsers'))
}
