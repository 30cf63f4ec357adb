import { z } from 'zod'
import { TOKEN_STATUS } from '../domain/records/token.ts'
import { orderOfQuery, pageOfQuery } from '../management/page.ts'
import {
  changeToken,
  changeTokenOrStatus,
  deleteTokens,
  enableOrDisableToken,
  rotateTokenOf,
  tokenChangeOrStatus,
  tokenStatusInput,
} from '../management/tokens/change-token.ts'
import { createTokenAs } from '../management/tokens/create-token.ts'
import {
  revealKey,
  revealKeys,
  searchTokens,
  stoppedTokensOf,
  tokenIdsText,
  tokenPage,
  tokenPageQuery,
  tokenPageSchema,
} from '../management/tokens/list-tokens.ts'
import { allTokens, allTokensQuery, allTokensSchema } from '../management/tokens/tokens-of-all.ts'
import {
  changedTokenFields,
  maskedToken,
  newTokenFields,
  ownTokenNotFound,
  TOKEN_ID_SCHEMAS,
  tokenSchema,
} from '../management/tokens/token-object.ts'
import { manageableUser } from '../management/users/list-users.ts'
import { userIdText } from '../management/users/user-object.ts'
import { defineAccountEndpoint, defineAdminEndpoint, type JsonEndpoint } from './endpoint.ts'

const OF_USER = '/api/user/:id/tokens'
const USER_PARAMS = z.object({ id: userIdText })
const ONE_OF_USER = '/api/user/:id/tokens/:token_id'
const ONE_OF_USER_PARAMS = USER_PARAMS.extend({ token_id: TOKEN_ID_SCHEMAS.path.shape.id })
/** Tools for new-api send `true`. Other texts are refused: if they were ignored, a key would stay enabled without an error. */
const STATUS_ONLY = z.enum(['1', 'true', '0', 'false', ''], { error: 'expected 1, true, 0 or false' })
const STOPPED_QUERY = z.object({ ids: tokenIdsText })

/** Endpoints to manage API keys: `docs/api.md: Token management`, and `docs/api.md: Keys of other users`. */
export const TOKEN_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAccountEndpoint('GET', '/api/token/', {
    summary: "A page of the account's tokens, newest first",
    errorStatuses: [400],
    query: tokenPageQuery,
    responseBody: tokenPageSchema,
    handle: ({ user, query, services }) =>
      tokenPage(services, { user: user.id, ...pageOfQuery(query), order: orderOfQuery(query) }),
  }),
  defineAccountEndpoint('GET', '/api/token/search', {
    limit: 'search',
    summary: "A page of the account's tokens whose name and key match",
    errorStatuses: [400],
    query: tokenPageQuery.extend({ keyword: z.string().optional(), token: z.string().optional() }),
    responseBody: tokenPageSchema,
    handle: ({ user, query: { keyword, token, ...page }, services }) =>
      searchTokens(services, {
        user: user.id,
        keyword,
        token,
        ...pageOfQuery(page),
        order: orderOfQuery(page),
      }),
  }),
  defineAdminEndpoint('GET', '/api/token/all', {
    limit: 'search',
    limitIf: ({ keyword, user }) => Boolean(keyword || user),
    summary: 'A page of the tokens of all users that the administrator manages, and of the administrator',
    errorStatuses: [400],
    query: allTokensQuery,
    responseBody: allTokensSchema,
    handle: ({ user, query, services }) => allTokens(services, query, user),
  }),
  defineAccountEndpoint('GET', '/api/token/stopped', {
    summary: "Those of the account's tokens whose calls a budget refuses",
    errorStatuses: [400],
    query: STOPPED_QUERY,
    responseBody: z.array(z.int()),
    handle: ({ user, query, services }) => stoppedTokensOf(services, user.id, query.ids),
  }),
  defineAccountEndpoint('GET', '/api/token/:id', {
    summary: "One of the account's tokens, its key masked",
    params: TOKEN_ID_SCHEMAS.path,
    responseBody: tokenSchema,
    async handle({ user, params, services }) {
      const token = await services.store.read('findTokenWithKey', { tokenId: params.id, userId: user.id })
      return maskedToken(services, token ?? ownTokenNotFound())
    },
  }),
  defineAccountEndpoint('POST', '/api/token/:id/key', {
    limit: 'critical',
    cache: 'never',
    summary: "The whole key of one of the account's tokens",
    params: TOKEN_ID_SCHEMAS.path,
    responseBody: z.object({ key: z.string() }),
    async handle({ user, params, services }) {
      return { key: await revealKey(services, { user: user.id, id: params.id }) }
    },
  }),
  defineAccountEndpoint('POST', '/api/token/:id/rotate', {
    limit: 'critical',
    cache: 'never',
    summary: "A new key for one of the account's tokens; it is in this response alone",
    params: TOKEN_ID_SCHEMAS.path,
    responseBody: tokenSchema,
    handle: ({ user, params, services }) => rotateTokenOf(services, { user: user.id, id: params.id }),
  }),
  defineAccountEndpoint('POST', '/api/token/', {
    isLimitedDaily: () => true,
    limit: 'critical',
    limitIf: ({ reveal }) => reveal === '1',
    cache: 'never',
    summary: 'A new token; the response contains its id and its key with reveal=1 alone',
    query: z.object({ reveal: z.string().optional() }),
    body: newTokenFields,
    responseBody: z.object({ id: z.int(), key: z.string() }).optional(),
    async handle({ user, query, body, services }) {
      const { id, key } = await createTokenAs(services, { ...body, user: user.id }, user)
      return query.reveal === '1' ? { id, key } : undefined
    },
  }),
  defineAccountEndpoint('POST', '/api/token/batch', {
    summary: "Deletes several of the account's tokens, and returns how many there were",
    body: TOKEN_ID_SCHEMAS.body,
    deletes: () => true,
    responseBody: z.int(),
    handle: ({ user, body, services }) => deleteTokens(services, { user: user.id, ids: body.ids }),
  }),
  defineAccountEndpoint('POST', '/api/token/batch/keys', {
    limit: 'critical',
    cache: 'never',
    summary: "The whole keys of several of the account's tokens",
    body: TOKEN_ID_SCHEMAS.body,
    responseBody: z.object({ keys: z.record(z.string(), z.string()) }),
    async handle({ user, body, services }) {
      return { keys: await revealKeys(services, { user: user.id, ids: body.ids }) }
    },
  }),
  defineAccountEndpoint('PUT', '/api/token/', {
    // A key can be disabled at any time.
    isLimitedDaily: (body: object) => !('status' in body) || body.status === TOKEN_STATUS.enabled,
    summary: "Changes one of the account's tokens; with status_only=1 its status alone",
    errorStatuses: [404, 409],
    query: z.object({ status_only: STATUS_ONLY.optional() }),
    body: z.union([changedTokenFields, tokenStatusInput]),
    bodyIf: {
      query: ({ status_only: only }) => only === '1' || only === 'true',
      is: tokenStatusInput,
      else: changedTokenFields,
    },
    responseBody: tokenSchema,
    handle: ({ user, body, services }) =>
      'status' in body
        ? enableOrDisableToken(services, { ...body, user: user.id })
        : changeToken(services, { ...body, user: user.id }, user),
  }),
  defineAccountEndpoint('DELETE', '/api/token/:id', {
    summary: "Deletes one of the account's tokens",
    params: TOKEN_ID_SCHEMAS.path,
    async handle({ user, params, services }) {
      if ((await deleteTokens(services, { user: user.id, ids: [params.id] })) === 0) ownTokenNotFound()
    },
  }),
  defineAdminEndpoint('GET', OF_USER, {
    summary: "A page of a user's tokens, newest first, with masked keys",
    errorStatuses: [400, 404],
    params: USER_PARAMS,
    query: tokenPageQuery,
    responseBody: tokenPageSchema,
    async handle({ user: by, params, query, services }) {
      const { id } = await manageableUser(services, params.id, by)
      return tokenPage(services, { user: id, ...pageOfQuery(query), order: orderOfQuery(query) })
    },
  }),
  defineAdminEndpoint('GET', `${OF_USER}/stopped`, {
    summary: "Those of a user's tokens whose calls a budget refuses",
    errorStatuses: [400, 404],
    params: USER_PARAMS,
    query: STOPPED_QUERY,
    responseBody: z.array(z.int()),
    async handle({ user: by, params, query, services }) {
      const { id } = await manageableUser(services, params.id, by)
      return stoppedTokensOf(services, id, query.ids)
    },
  }),
  defineAdminEndpoint('POST', OF_USER, {
    summary: 'A new token of a user; its key is in this response alone',
    errorStatuses: [404],
    params: USER_PARAMS,
    cache: 'never',
    body: newTokenFields,
    responseBody: tokenSchema,
    async handle({ user: by, params, body, services }) {
      const { id } = await manageableUser(services, params.id, by)
      return createTokenAs(services, { ...body, user: id }, by)
    },
  }),
  defineAdminEndpoint('PUT', OF_USER, {
    summary: "Changes one of a user's tokens, or enables or disables it",
    errorStatuses: [404, 409],
    params: USER_PARAMS,
    body: tokenChangeOrStatus,
    responseBody: tokenSchema,
    async handle({ user: by, params, body, services }) {
      const { id } = await manageableUser(services, params.id, by)
      return changeTokenOrStatus(services, { ...body, user: id }, by)
    },
  }),
  defineAdminEndpoint('GET', ONE_OF_USER, {
    summary: "One of a user's tokens, its key masked",
    params: ONE_OF_USER_PARAMS,
    responseBody: tokenSchema,
    async handle({ user: by, params, services }) {
      const { id: userId } = await manageableUser(services, params.id, by)
      const token = await services.store.read('findTokenWithKey', { tokenId: params.token_id, userId })
      return maskedToken(services, token ?? ownTokenNotFound())
    },
  }),
  defineAdminEndpoint('POST', `${ONE_OF_USER}/rotate`, {
    cache: 'never',
    summary: "A new key for one of a user's tokens; it is in this response alone",
    params: ONE_OF_USER_PARAMS,
    responseBody: tokenSchema,
    async handle({ user: by, params, services }) {
      const { id: user } = await manageableUser(services, params.id, by)
      return rotateTokenOf(services, { user, id: params.token_id })
    },
  }),
  defineAdminEndpoint('DELETE', ONE_OF_USER, {
    summary: "Deletes one of a user's tokens",
    params: ONE_OF_USER_PARAMS,
    async handle({ user: by, params, services }) {
      const { id: user } = await manageableUser(services, params.id, by)
      if ((await deleteTokens(services, { user, ids: [params.token_id] })) === 0) ownTokenNotFound()
    },
  }),
]
