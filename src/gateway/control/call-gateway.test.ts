import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { OperationName } from '../../management/operations.ts'
import { callGateway } from './call-gateway.ts'
import { socketPath } from './socket-path.ts'

/** A data folder on which a gateway takes commands and answers them in this way. */
async function folderOfGateway(answer: RequestListener): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-control-'))
  const server = createServer(answer)
  const { path } = socketPath(folder)
  await new Promise<void>((resolve) => void server.listen(path, resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

const SILENT: RequestListener = () => {}
const BREAKING: RequestListener = ({ socket }) => socket.destroy()

test.each<[OperationName, object, string, string, RequestListener]>([
  ['topUpUser', { user: 'ann', amount: 5 }, 'sluice user show', 'in time', SILENT],
  ['topUpUser', { user: 'ann', amount: 5 }, 'sluice user show', '(socket hang up)', BREAKING],
  ['deleteToken', { id: 1 }, 'sluice token list', 'in time', SILENT],
])(
  'without an answer to %s with %j, the error says that it may have been done, and that "%s" shows it: %s',
  async (operation, input, shownBy, how, answer) => {
    const folder = await folderOfGateway(answer)
    const failed = callGateway(folder, operation, input as never, 50)
    await expect(failed).rejects.toThrow(
      `the gateway on ${folder} does not answer ${how}: look at its log; what was commanded may have been done, or may still be: before the command is run again, check it with "${shownBy}"`,
    )
  },
)

test.each<[OperationName, object]>([
  ['showUser', { user: 'ann' }],
  ['rotateToken', { id: 1 }],
])(
  'a command that changes nothing, or replaces what an earlier one did, can be run again without an answer: %s',
  async (operation, input) => {
    const folder = await folderOfGateway(SILENT)
    await expect(callGateway(folder, operation, input as never, 50)).rejects.toThrow(
      'does not answer in time: look at its log; the command can be run once it has stopped',
    )
  },
)
