import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startMailServer } from '../../test/fixtures/mail-server.ts'
import { type AlertAttempt, createAlertAgent, isDelivered, sendAlert } from './alert-sender.ts'

/** Makes one attempt to send a mail by the server at a port of this machine. */
function sendMail(port: number, addresses: string, signal: AbortSignal): Promise<AlertAttempt> {
  const agent = createAlertAgent(1)
  onTestFinished(() => agent.destroy())
  return sendAlert(
    { url: `mailto:${addresses}`, secret: '', format: 'standard', types: ['quota.low'] },
    { id: 'msg_1', type: 'test', data: '{}', createdMs: 0, firstMs: 0, attempts: 1 },
    agent,
    signal,
    { host: '127.0.0.1', port, security: 'none', user: '', password: '', from: 'sluice@example.com' },
  )
}

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
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const attempt = sendMail(port, 'ops@example.com', signal)
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

test('a mail that a server refuses for all its addresses is sent again, even if it refuses them for good', async () => {
  const addresses = ['ops@example.com', 'new@example.com']
  const mails = await startMailServer(false, new Set(), new Set(addresses))
  onTestFinished(() => mails.stop())
  const attempt = await sendMail(mails.port, addresses.join(','), new AbortController().signal)
  expect(attempt.reason).toBe('it refused 2 of 2 addresses')
  expect(isDelivered(attempt)).toBe(false)
})
