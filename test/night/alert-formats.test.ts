import { writeFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { type Configuration, plainConfiguration, ROOT, user } from '../fixtures/configuration.ts'
import { startMailServer } from '../fixtures/mail-server.ts'
import { readyProgram, runProgram } from '../operations/program.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

const gateway = (more: Partial<Configuration>) =>
  readyProgram({
    config: { ...plainConfiguration('http://127.0.0.1:9/v1'), users: [ROOT, user(2, 'ann', [])], ...more },
  })

async function receiver() {
  const started = await startAlertReceiver()
  onTestFinished(() => started.stop())
  return started
}

async function mailServer(offersAuth = false) {
  const started = await startMailServer(offersAuth)
  onTestFinished(() => started.stop())
  return started
}

test.each(['slack', 'teams', 'discord'] as const)(
  'a receiver of the format %s gets messages of that chat, without a signature',
  async (format) => {
    const told = await receiver()
    const program = await gateway({ alerts: [{ url: told.url, format, events: ['channel.resting'] }] })
    const { data } = await manage<{ id: string; format: string }[]>(
      program.url,
      ROOT_ACCOUNT,
      'GET /api/alert/',
    )
    expect(data[0]?.format).toBe(format)
    const tested = await manage(program.url, ROOT_ACCOUNT, `POST /api/alert/${data[0]?.id}/test`)
    expect(tested.data).toMatchObject({ success: true, status: 204 })
    const [message] = told.received
    expect(message?.headers).not.toHaveProperty('webhook-signature')
    const name = { slack: 'text', teams: 'attachments', discord: 'content' }[format]
    expect(JSON.parse(message?.text ?? '')).toHaveProperty(name)
    expect(message?.text).toContain('A test of this receiver')
  },
)

test('a refused configuration file is told once, by webhook and by mail, and named in the console until one is applied', async () => {
  const told = await receiver()
  const mails = await mailServer()
  const config = {
    ...plainConfiguration('http://127.0.0.1:9/v1'),
    users: [ROOT],
    options: {
      smtp: { host: '127.0.0.1', port: mails.port, security: 'none', from: 'Sluice <sluice@example.com>' },
    },
    alerts: [
      told.declared('config.refused'),
      { url: 'mailto:ops@example.com,it@example.com', events: ['config.refused'] },
    ],
  }
  const program = await readyProgram({ config })
  const shell = async () =>
    (await manage<{ refused_configuration: unknown }>(program.url, ROOT_ACCOUNT, 'GET /api/console')).data
      .refused_configuration
  expect(await shell()).toBeNull()
  writeFileSync(program.folder.configFile, `${stringify(config)}\nbroken: true\n`)
  await told.atLeast(1)
  const [alert] = told.received
  expect(alert).toMatchObject({ type: 'config.refused', isSigned: true })
  expect(alert?.data).toMatchObject({ mistakes: 1, line: expect.any(Number) as number })
  await expect.poll(() => mails.received.length).toBe(1)
  const [mail] = mails.received
  expect(mail).toMatchObject({ from: 'sluice@example.com', to: ['ops@example.com', 'it@example.com'] })
  expect(mail?.text).toMatch(/^Subject: Sluice: A configuration file was refused/m)
  expect(mail?.text).toMatch(/^Content-Type: text\/plain/m)
  expect(mail?.text).toContain('mistakes: 1')
  expect(await shell()).toMatchObject({ mistakes: 1, message: expect.stringContaining('broken') as string })
  writeFileSync(program.folder.configFile, stringify(config))
  await expect.poll(shell).toBeNull()
  expect(told.received).toHaveLength(1)
})

test('a mail server without encryption gets neither user and password nor a mail that must be encrypted', async () => {
  const mails = await mailServer(true)
  const smtp = {
    host: '127.0.0.1',
    port: mails.port,
    from: 'sluice@example.com',
    user: 'ann',
    password: 'secret',
  }
  const alerts = [{ url: 'mailto:ops@example.com', events: ['channel.back'] }]
  const program = await gateway({ options: { smtp }, alerts })
  const { data } = await manage<{ id: string; host: string }[]>(program.url, ROOT_ACCOUNT, 'GET /api/alert/')
  expect(data[0]).toMatchObject({ host: 'example.com', format: 'mail' })
  const tested = await manage(program.url, ROOT_ACCOUNT, `POST /api/alert/${data[0]?.id}/test`)
  expect(tested.data).toMatchObject({ success: false })
  expect(mails.received).toEqual([])
  const clear = await runProgram({
    config: {
      ...plainConfiguration('http://127.0.0.1:9/v1'),
      options: { smtp: { ...smtp, security: 'none' } },
      alerts,
    },
  })
  expect((await clear.exit).code).toBe(1)
  expect(clear.err()).toContain(
    'options.smtp.security: expected starttls or tls: user and password would be sent in clear',
  )
  clear.folder.discard()
})

test.each([
  [
    { alerts: [{ url: 'mailto:ops@example.com', events: ['channel.back'] }] },
    'alerts[0].url: expected options.smtp',
  ],
  [{ alerts: [{ url: 'http://a.test', events: ['channel.back'] }] }, 'alerts[0].secret: expected whsec_'],
  [
    { alerts: [{ url: 'mailto:ops@example.com?cc=x@y.z', events: ['channel.back'] }] },
    'alerts[0].url: expected',
  ],
])('a receiver that cannot be reached is a mistake of configuration: %j', async (fields, message) => {
  const program = await runProgram({ config: { ...plainConfiguration('http://127.0.0.1:9/v1'), ...fields } })
  expect((await program.exit).code).toBe(1)
  expect(program.err()).toContain(message)
  program.folder.discard()
})
