import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createAlertAgent, sendAlert } from './alert-sender.ts'

/** A mail server whose first response never ends; resolves to the connection of a mail under way. */
async function mailUnderWay(signal: AbortSignal) {
  const server = createServer((socket) => {
    socket.on('error', () => {}).write('220 mail\r\n')
    socket.once('data', () => {
      const lines = setInterval(() => socket.write('250-more\r\n'), 5)
      socket.on('close', () => clearInterval(lines))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const agent = createAlertAgent(1)
  onTestFinished(async () => {
    server.close()
    await agent.destroy()
  })
  const { port } = server.address() as AddressInfo
  const attempt = sendAlert(
    { url: 'mailto:ops@example.com', secret: '', format: 'standard', types: ['quota.low'] },
    { id: 'msg_1', type: 'test', data: '{}', createdMs: 0, firstMs: 0, attempts: 1 },
    agent,
    signal,
    { host: '127.0.0.1', port, security: 'none', user: '', password: '', from: 'sluice@example.com' },
  )
  const [socket] = (await once(server, 'connection')) as [Socket]
  await once(socket, 'data')
  return { attempt, closed: once(socket, 'close') }
}

test('a stop ends a mail that a server never accepts, and its connection', async () => {
  const stopping = new AbortController()
  const { attempt, closed } = await mailUnderWay(stopping.signal)
  stopping.abort()
  expect(await attempt).toMatchObject({ status: null, reason: expect.any(String) as string })
  await closed
})

test('an attempt to send a mail ends after 15 seconds, even if its server sends something meanwhile', async () => {
  const limit = new AbortController()
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal)
  onTestFinished(() => timeout.mockRestore())
  const { attempt, closed } = await mailUnderWay(new AbortController().signal)
  expect(timeout).toHaveBeenCalledExactlyOnceWith(15_000)
  limit.abort(new DOMException('over', 'TimeoutError'))
  expect((await attempt).reason).toBe('it did not answer within 15 seconds')
  await closed
})
