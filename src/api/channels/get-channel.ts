import { channelSchema, declaredObject, storedObject } from '../../management/channels/channel-object.ts'
import { channelPath, findChannel } from '../../management/channels/find-channel.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const getChannel = defineEndpoint({
  method: 'GET',
  path: '/api/channel/:id',
  area: 'management',
  access: 'admin',
  summary: 'One channel, without its keys',
  params: channelPath,
  responseBody: channelSchema,
  async handle({ params, parts }) {
    const found = await findChannel(parts, params.id)
    return 'stored' in found
      ? storedObject(found.stored)
      : declaredObject(found.declared, parts.liveConfig.declared.by)
  },
})
