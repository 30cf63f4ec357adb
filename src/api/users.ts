import { z } from 'zod'
import { groupBudgets, groupBudgetsSchema } from '../management/account-limits.ts'
import {
  changedGroupInput,
  changeGroup,
  createGroup,
  deleteGroup,
  newGroupInput,
} from '../management/groups/change-group.ts'
import { groupField, groupSchema, listGroups } from '../management/groups/list-groups.ts'
import {
  changedUserInput,
  changeUser,
  deleteUser,
  manageUserInput,
  manageUser,
} from '../management/users/change-user.ts'
import { createUserAs, newUserInput } from '../management/users/create-user.ts'
import {
  identitiesSchema,
  identityQuery,
  ownIdentities,
  unlinkIdentity,
} from '../management/users/own-account.ts'
import {
  invitationIdText,
  invitationsFor,
  invitationsSchema,
  inviteAs,
  newInvitationInput,
  newInvitationSchema,
  withdrawInvitationAs,
} from '../management/users/invitations.ts'
import {
  findUsers,
  manageableUser,
  userNotFound,
  userPageQuery,
  userPageSchema,
  userSearchInput,
} from '../management/users/list-users.ts'
import {
  managedUserObject,
  managedUserSchema,
  passwordField,
  userIdText,
} from '../management/users/user-object.ts'
import { defineAdminEndpoint, defineRootUserEndpoint, type JsonEndpoint } from './endpoint.ts'

const IDENTITIES = '/api/user/:id/identities'
const USER_PATH = z.object({ id: userIdText })

/** Endpoints to manage users and groups: `docs/api.md: Users`, and `docs/administration.md: Groups`. */
export const USER_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAdminEndpoint('GET', '/api/user/', {
    summary: 'All users, a page of them, newest first',
    errorStatuses: [400],
    query: userPageQuery,
    responseBody: userPageSchema,
    handle: ({ query, services }) => findUsers(services, query),
  }),
  defineAdminEndpoint('GET', '/api/user/search', {
    summary: 'Users by a part of their name or e-mail address, by id, by group',
    limit: 'search',
    errorStatuses: [400],
    query: userSearchInput,
    responseBody: userPageSchema,
    handle: ({ query, services }) => findUsers(services, query),
  }),
  defineAdminEndpoint('POST', '/api/user/invite', {
    summary: 'Invite a person to create an account, by a link that is valid once and for 72 hours',
    cache: 'never',
    body: newInvitationInput,
    responseBody: newInvitationSchema,
    handle: ({ user, body, services }) => inviteAs(services, body, user),
  }),
  defineAdminEndpoint('GET', '/api/user/invite', {
    summary: 'Open invitations, the newest first',
    responseBody: invitationsSchema,
    handle: ({ user, services }) => invitationsFor(services, user),
  }),
  defineAdminEndpoint('DELETE', '/api/user/invite/:id', {
    summary: 'Withdraw an invitation',
    errorStatuses: [404],
    params: z.object({ id: invitationIdText }),
    handle: ({ user, params, services }) => withdrawInvitationAs(services, params.id, user),
  }),
  defineAdminEndpoint('GET', '/api/user/:id', {
    summary: 'One user',
    params: z.object({ id: userIdText }),
    responseBody: managedUserSchema,
    async handle({ params: { id: userId }, services }) {
      return managedUserObject(
        services,
        (await services.store.read('managedUser', { userId })) ?? userNotFound(userId),
      )
    },
  }),
  defineAdminEndpoint('POST', '/api/user/', {
    summary: 'Create a user who can log in',
    body: newUserInput.extend({ password: passwordField }),
    responseBody: managedUserSchema,
    async handle({ user, body, services }) {
      return managedUserObject(services, await createUserAs(services, body, user))
    },
  }),
  defineAdminEndpoint('PUT', '/api/user/', {
    summary: 'Change fields of a user',
    errorStatuses: [404, 409],
    body: changedUserInput,
    responseBody: managedUserSchema,
    async handle({ user, body, services }) {
      return managedUserObject(services, await changeUser(services, body, user))
    },
  }),
  defineAdminEndpoint('DELETE', '/api/user/:id', {
    summary: 'Delete a user, and all its tokens',
    params: z.object({ id: userIdText }),
    handle: ({ user, params, services }) => deleteUser(services, params.id, user),
  }),
  defineAdminEndpoint('POST', '/api/user/manage', {
    summary: 'Disable, enable, delete, promote or demote a user, or change its quota',
    errorStatuses: [404],
    body: manageUserInput,
    deletes: ({ action }) => action === 'delete',
    responseBody: managedUserSchema.optional(),
    async handle({ user, body, services }) {
      const managed = await manageUser(services, body, user)
      return managed && managedUserObject(services, managed)
    },
  }),
  defineAdminEndpoint('GET', IDENTITIES, {
    summary: "A user's identities at identity providers, the oldest first",
    errorStatuses: [404],
    params: USER_PATH,
    responseBody: identitiesSchema,
    async handle({ user, params, services }) {
      return ownIdentities(services, await manageableUser(services, params.id, user))
    },
  }),
  defineAdminEndpoint('DELETE', IDENTITIES, {
    summary: "Take an identity from a user, and end the user's sessions",
    errorStatuses: [400, 404],
    params: USER_PATH,
    query: identityQuery,
    async handle({ user, params, query, services }) {
      await unlinkIdentity(services, await manageableUser(services, params.id, user), query, undefined)
    },
  }),
  defineAdminEndpoint('GET', '/api/group/', {
    summary: 'The names of all groups',
    responseBody: z.array(z.string()),
    handle: ({ services }) => Promise.resolve([...services.settings().groups.keys()].toSorted()),
  }),
  defineAdminEndpoint('GET', '/api/group/budgets', {
    summary: 'The budgets of all groups, with their use in the current period',
    responseBody: groupBudgetsSchema,
    handle: ({ services }) => groupBudgets(services),
  }),
  defineAdminEndpoint('GET', '/api/group/all', {
    summary: 'All groups: ratio, members, models, channels, guards and budget',
    responseBody: z.array(groupSchema),
    handle: ({ services }) => listGroups(services),
  }),
  defineRootUserEndpoint('POST', '/api/group/', {
    summary: 'Create a group',
    errorStatuses: [409],
    body: newGroupInput,
    responseBody: groupSchema,
    handle: ({ body, services }) => createGroup(services, body),
  }),
  defineRootUserEndpoint('PUT', '/api/group/', {
    summary: 'Change the given fields of a group',
    errorStatuses: [404, 409],
    body: changedGroupInput,
    responseBody: groupSchema,
    handle: ({ body, services }) => changeGroup(services, body),
  }),
  defineRootUserEndpoint('DELETE', '/api/group/', {
    summary: 'Delete a group without members',
    errorStatuses: [400, 404, 409],
    query: z.object({ group: groupField }),
    async handle({ query, services }) {
      await deleteGroup(services, query)
    },
  }),
]
