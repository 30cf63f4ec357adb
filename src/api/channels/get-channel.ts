import { declaredObject, storedObject } from '../../management/channels/channel-object.ts'
import { CHANNEL_ID, findChannel } from '../../management/channels/find-channel.ts'
import { shownChannel, shownChannelSchema } from '../../management/channels/shown-channel.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const getChannel = defineEndpoint({
  method: 'GET',
  path: '/api/channel/:id',
  area: 'management',
  access: 'admin',
  summary: 'One channel, without its keys',
  params: CHANNEL_ID.path,
  responseBody: shownChannelSchema,
  async handle({ params, parts }) {
    const found = await findChannel(parts, params.id)
    const object =
      'stored' in found
        ? storedObject(found.stored)
        : declaredObject(found.declared, parts.liveConfig.declared.by)
    return shownChannel(parts, object)
  },
})
