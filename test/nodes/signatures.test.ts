import { describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { chatClient, converse } from '../fixtures/dropping-clients.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { SigningModel } from '../fixtures/signing-model.ts'
import { messagesWire } from '../fixtures/signing-wires.ts'
import { setNodes, SHARED } from './fixture.ts'

describe.each(SHARED)('several nodes on $name', (engine) => {
  test('thought signatures are shared by nodes: a client that changes the node with each request loses none', async () => {
    const nodes = await setNodes(
      engine,
      2,
      (upstream) => ({
        models: priced(['claude']),
        channels: [channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' })],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      }),
      { program: patientProgram },
    )
    const model = new SigningModel(messagesWire)
    nodes.upstream.decide('claude', model.decide)
    let request = 0
    const urls = nodes.gateways.map(({ url }) => url)
    const client = chatClient(() => urls[request++ % urls.length] ?? '', {
      model: 'claude',
      stream: true,
    })
    expect(await converse(client, 3)).toBe(9)
    expect(model.refusals).toEqual([])
  })
})
