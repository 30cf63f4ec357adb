import { GatewayError } from '../../errors.ts'
import { deleteChannels } from '../../management/channels/delete-channels.ts'
import { CHANNEL_ID } from '../../management/channels/find-channel.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Channels`. */
export const deleteChannel = defineEndpoint({
  method: 'DELETE',
  path: '/api/channel/:id',
  area: 'management',
  access: 'admin',
  summary: 'Removes a channel',
  errorStatuses: [409],
  params: CHANNEL_ID.path,
  async handle({ params, parts }) {
    const removed = await deleteChannels(parts, [params.id])
    if (removed === 0) throw new GatewayError('not_found', `there is no channel with the id ${params.id}`)
  },
})
