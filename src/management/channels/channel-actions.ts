import { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import { OPERATOR } from '../authority.ts'
import type { AdministrationServices } from '../services.ts'
import { readInput } from '../input-fields.ts'
import type { TestResult } from './test-channel.ts'
import { allChannels, type ChannelObject, type FoundChannel } from './channel-object.ts'

/** What operations on channels need. */
type ChannelServices = Pick<
  AdministrationServices,
  'store' | 'liveConfig' | 'upstreams' | 'nowMs' | 'settings' | 'channels' | 'endReads'
>

const EXPECTED = 'expected the name of a channel'

const namedChannel = z.object({
  channel: z.string({ error: EXPECTED }).min(1, { error: EXPECTED }).max(200, { error: EXPECTED }),
})

const testedChannel = namedChannel.extend({ model: z.string().max(200).optional() })

interface ChannelTest extends TestResult {
  readonly channel: string
}

/**
 * Sends a minimal request to a channel's upstream; nobody is charged. `message` is the upstream's error
 * message.
 */
export async function testNamedChannel(
  services: ChannelServices,
  given: z.input<typeof testedChannel>,
): Promise<ChannelTest> {
  const { channel, model } = readInput(testedChannel, given)
  const { id } = await findByName(services, channel)
  const { testChannel } = await import('./test-channel.ts')
  return { channel, ...(await testChannel(services, { id, model }, OPERATOR)) }
}

/** Enables a stored channel, so that it gets calls from now on. */
export function enableChannel(
  services: ChannelServices,
  given: z.input<typeof namedChannel>,
): Promise<ChannelObject> {
  return setStatus(services, given, 1)
}

/** Disables a stored channel: it gets no more calls, but running ones continue. */
export function disableChannel(
  services: ChannelServices,
  given: z.input<typeof namedChannel>,
): Promise<ChannelObject> {
  return setStatus(services, given, 2)
}

async function setStatus(services: ChannelServices, given: unknown, status: 1 | 2): Promise<ChannelObject> {
  const { id } = await findByName(services, readInput(namedChannel, given).channel)
  // The module is loaded on demand, because most commands are about accounts.
  const { updateChannel } = await import('./change-channels.ts')
  return updateChannel(services, { id, status }, OPERATOR)
}

async function findByName(
  services: Pick<ChannelServices, 'store' | 'liveConfig'>,
  name: string,
): Promise<FoundChannel> {
  const found = (await allChannels(services)).find((channel) => channel.name === name)
  if (found) return found
  throw new GatewayError('not_found', `there is no channel "${name}": "sluice channel list" shows them`)
}
