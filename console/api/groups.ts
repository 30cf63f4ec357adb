import { queryOptions } from '@tanstack/react-query'
import type { GroupObject } from '../../src/management/groups/list-groups.ts'
import type { LimitFields } from '../components/limit-form-values.ts'
import { queryString, request } from './client.ts'
import type { PageOfItems } from './page-of-items.ts'
import type { ManagedUser } from './users.ts'

/** A group, with its members, models and budget. */
export type ManagedGroup = GroupObject

/** Number of members that are listed by name. */
export const LISTED_MEMBERS = 50

export function managedGroupsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'managed-groups'],
    queryFn: () => request<readonly ManagedGroup[]>('GET', '/api/group/all'),
  })
}

/** The newest members of a group, and the number of all. */
export function groupMembersQuery(userId: number, group: string) {
  return queryOptions({
    queryKey: [userId, 'users', 'of-group', group],
    queryFn: () =>
      request<PageOfItems<ManagedUser>>(
        'GET',
        `/api/user/search${queryString({ group, page_size: LISTED_MEMBERS })}`,
      ),
  })
}

/** The fields of a group that root can set; absent ones stay as they are. */
interface GroupFields extends Pick<LimitFields, 'budget' | 'budget_period'> {
  readonly ratio?: string
  readonly open?: boolean
  readonly guards?: readonly string[]
}

export function createGroup(group: string, fields: GroupFields): Promise<ManagedGroup> {
  return request<ManagedGroup>('POST', '/api/group/', { group, ...fields })
}

/** Changes a group that still has this version. */
export function changeGroup(
  group: string,
  fields: GroupFields,
  version: string | undefined,
): Promise<ManagedGroup> {
  return request<ManagedGroup>('PUT', '/api/group/', { group, ...fields, version })
}

export async function deleteGroup(group: string): Promise<void> {
  await request('DELETE', `/api/group/${queryString({ group })}`)
}
