import { z } from 'zod'
import { GatewayError } from '../errors.ts'
import {
  channelHealth,
  channelHealthQuery,
  channelHealthSchema,
} from '../management/channels/channel-health.ts'
import { CHANNEL_ID_SCHEMAS, channelObject, findChannel } from '../management/channels/channel-object.ts'
import {
  channelChange,
  createChannels,
  deleteChannels,
  drainBody,
  drainChannel,
  newChannelBody,
  updateChannel,
} from '../management/channels/change-channels.ts'
import {
  channelPage,
  channelQuery,
  listChannels,
  revealChannelKeys,
  channelWithTestCost,
  shownChannelSchema,
} from '../management/channels/list-channels.ts'
import {
  addChannelKeys,
  addedKeysSchema,
  channelKeysSchema,
  channelKeyPath,
  keyStateBody,
  listChannelKeys,
  removeChannelKey,
  setKeyState,
} from '../management/channels/channel-keys.ts'
import {
  listUpstreamModels,
  listModelsBody,
  upstreamModels,
} from '../management/channels/upstream-requests.ts'
import {
  draftTest,
  testAllBody,
  testAllChannels,
  testAllResult,
  testChannel,
  testDraftChannel,
  testQuery,
  testResult,
} from '../management/channels/test-channel.ts'
import { defineAdminEndpoint, defineRootUserEndpoint, type JsonEndpoint } from './endpoint.ts'

/**
 * Endpoints to manage and test channels: `docs/administration.md: Channels`,
 * `docs/administration.md: Test a channel`.
 */
export const CHANNEL_ENDPOINTS: readonly JsonEndpoint[] = [
  defineAdminEndpoint('GET', '/api/channel/', {
    summary: 'The channels, without their keys',
    errorStatuses: [400],
    query: channelQuery,
    responseBody: channelPage,
    handle: ({ query, services }) => listChannels(services, query),
  }),
  defineAdminEndpoint('GET', '/api/channel/search', {
    summary: 'Channels by a part of their name or address, by group and by model',
    errorStatuses: [400],
    query: channelQuery,
    responseBody: channelPage,
    handle: ({ query, services }) => listChannels(services, query),
  }),
  defineAdminEndpoint('GET', '/api/channel/health', {
    summary: 'State, last error and last hour of each channel, as this node or all nodes see them',
    query: channelHealthQuery,
    errorStatuses: [400],
    responseBody: channelHealthSchema,
    tagged: withoutTimes,
    handle: ({ query, services }) => channelHealth(services, query),
  }),
  defineAdminEndpoint('GET', '/api/channel/:id', {
    summary: 'One channel, without its keys',
    params: CHANNEL_ID_SCHEMAS.path,
    responseBody: shownChannelSchema,
    async handle({ params, services }) {
      return channelWithTestCost(
        services,
        channelObject(await findChannel(services, params.id), services.liveConfig),
      )
    },
  }),
  defineAdminEndpoint('POST', '/api/channel/', {
    summary: 'Creates a channel, or one for each of several keys',
    errorStatuses: [409],
    body: newChannelBody,
    responseBody: z.object({ ids: z.array(z.int()) }),
    handle: ({ body, services }) => createChannels(services, body),
  }),
  defineAdminEndpoint('PUT', '/api/channel/', {
    summary: 'Changes a channel; absent fields stay',
    errorStatuses: [404, 409],
    body: channelChange,
    responseBody: shownChannelSchema,
    handle: ({ user, body, services }) => updateChannel(services, body, user),
  }),
  defineAdminEndpoint('PUT', '/api/channel/:id/drain', {
    summary: 'Takes new calls off a channel while others can serve them, or ends that',
    errorStatuses: [404],
    params: CHANNEL_ID_SCHEMAS.path,
    body: drainBody,
    responseBody: shownChannelSchema,
    handle: ({ params, body, services }) => drainChannel(services, { id: params.id, on: body.on }),
  }),
  defineAdminEndpoint('DELETE', '/api/channel/:id', {
    summary: 'Removes a channel',
    errorStatuses: [409],
    params: CHANNEL_ID_SCHEMAS.path,
    async handle({ params, services }) {
      const removed = await deleteChannels(services, [params.id])
      if (removed === 0) throw new GatewayError('not_found', `there is no channel with the id ${params.id}`)
    },
  }),
  defineAdminEndpoint('POST', '/api/channel/batch', {
    summary: 'Removes channels; returns how many there were',
    errorStatuses: [409],
    body: CHANNEL_ID_SCHEMAS.body,
    deletes: () => true,
    responseBody: z.int(),
    handle: ({ body, services }) => deleteChannels(services, body.ids),
  }),
  defineAdminEndpoint('GET', '/api/channel/test/:id', {
    hasEffect: true,
    summary: 'Tests a channel with a request for one token',
    params: CHANNEL_ID_SCHEMAS.path,
    query: testQuery,
    responseBody: testResult,
    envelope: 'own',
    handle: ({ user, params, query, services }) =>
      testChannel(services, { id: params.id, model: query.model }, user),
  }),
  defineAdminEndpoint('POST', '/api/channel/test/all', {
    summary: 'Tests channels, none with a request that costs a picture or speech',
    errorStatuses: [404],
    body: testAllBody,
    responseBody: testAllResult,
    handle: ({ user, body, services }) => testAllChannels(services, body, user),
  }),
  defineAdminEndpoint('POST', '/api/channel/test', {
    summary: 'Tests a channel that is not saved with a request for one token',
    errorStatuses: [404, 409],
    body: draftTest,
    responseBody: testResult,
    envelope: 'own',
    handle: ({ user, body, services }) => testDraftChannel(services, body, user),
  }),
  defineAdminEndpoint('POST', '/api/channel/models', {
    summary: 'Lists the models that the upstream of a channel names, saved or not',
    errorStatuses: [404, 409],
    body: listModelsBody,
    responseBody: upstreamModels,
    envelope: 'own',
    handle: ({ user, body, services }) => listUpstreamModels(services, body, user),
  }),
  defineRootUserEndpoint('GET', '/api/channel/:id/keys', {
    summary: 'The keys of a channel, masked, with their state as this node sees it',
    params: CHANNEL_ID_SCHEMAS.path,
    responseBody: channelKeysSchema,
    handle: ({ params, services }) => listChannelKeys(services, params.id),
  }),
  defineRootUserEndpoint('POST', '/api/channel/:id/keys', {
    summary: 'Adds keys to a channel, one a line',
    errorStatuses: [409],
    params: CHANNEL_ID_SCHEMAS.path,
    body: addedKeysSchema,
    responseBody: channelKeysSchema,
    handle: ({ params, body, services }) => addChannelKeys(services, { id: params.id, key: body.key }),
  }),
  defineRootUserEndpoint('PUT', '/api/channel/:id/keys', {
    summary: 'Retires a key of a channel, or uses it again',
    errorStatuses: [409],
    params: CHANNEL_ID_SCHEMAS.path,
    body: keyStateBody,
    responseBody: channelKeysSchema,
    handle: ({ params, body, services }) =>
      setKeyState(services, { id: params.id, key: body.id, state: body.state }),
  }),
  defineRootUserEndpoint('DELETE', '/api/channel/:id/keys/:key_id', {
    summary: 'Removes a key of a channel',
    errorStatuses: [409],
    params: channelKeyPath,
    handle: ({ params, services }) => removeChannelKey(services, params),
  }),
  defineRootUserEndpoint('POST', '/api/channel/:id/key', {
    limit: 'critical',
    cache: 'never',
    summary: 'The keys of a channel, one a line',
    errorStatuses: [409],
    params: CHANNEL_ID_SCHEMAS.path,
    responseBody: z.object({ key: z.string() }),
    handle: ({ params, services }) => revealChannelKeys(services, params.id),
  }),
]

/** A channel's health without timestamps, so that the entity tag does not change with every response. */
function withoutTimes({ others, ...own }: z.output<typeof channelHealthSchema>): object {
  return { ...own, at: 0, others: others.map((other) => ({ ...other, at: 0 })) }
}
