import { createServer, Socket } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openWorkerLedger } from '../src/gateway/open-worker-ledger.ts'
import { OwnerAnnouncer } from '../src/cluster/owner-announcer.ts'
import type { BankStatement } from '../src/store/bank.ts'
import type { LeasedAccounts } from '../src/accounts/ledger/leased-accounts.ts'
import { Link } from '../src/ipc/link.ts'
import {
  type BankRequest,
  openOwnedDatabase,
  type OwnedDatabase,
} from '../src/store/sqlite/owned-database.ts'
import type { Rows } from '../src/store/store.ts'
import { BANKS } from './bank-fixture.ts'
import { type LedgerNode, nodesOn } from './ledger-nodes.ts'
import { rowsWithAccount } from './store-engines.ts'
import { addAccount, preparedFile, SECRETS, temporaryFolder } from './store-rows.ts'

/** Several ledgers that borrow from one bank, with one user and one token of that user. */
export interface LedgersOfBank {
  readonly store: Rows
  readonly userId: number
  readonly tokenId: number
  readonly nodes: readonly LedgerNode[]
  /** The total that is lent of the token and the user. */
  readonly lent: () => Promise<number>
}

/** A kind of bank. */
export interface LedgerBank {
  readonly name: string
  readonly open: (count: number) => Promise<LedgersOfBank>
}

/** Nodes on PostgreSQL, if a server is available, and workers of one machine. */
export const LEDGER_BANKS: readonly LedgerBank[] = [
  ...BANKS.map((engine) => ({
    name: `nodes on ${engine.name}`,
    async open(count: number): Promise<LedgersOfBank> {
      const { store, database, userId, tokenId } = await rowsWithAccount(engine)
      const nodes = await nodesOn(store, database.place, count)
      const lent = async (): Promise<number> => {
        const [row] = await database.sql(
          'select (select coalesce(sum(amount), 0) from leases)::bigint as amounts, ' +
            '(select sum(leased) from tokens)::bigint as tokens, (select sum(leased) from users)::bigint as users',
        )
        return Number(row?.['amounts']) + Number(row?.['tokens']) + Number(row?.['users'])
      }
      return { store, userId, tokenId, nodes, lent }
    },
  })),
  { name: 'workers of one machine', open: openWorkers },
]

async function openWorkers(count: number): Promise<LedgersOfBank> {
  const path = await preparedFile()
  const links: Link[] = []
  const announce = (text: string): void => {
    for (const link of links) link.send('announce', text)
  }
  const database = await openOwnedDatabase({
    path,
    secrets: SECRETS,
    announce: (account) => announce(`account ${account}`),
  })
  onTestFinished(() => database.close())
  const { store } = database
  const { userId, tokenId } = await addAccount(store)
  const nodes: LedgerNode[] = []
  for (let index = 1; index <= count; index += 1) {
    const [owners, workers] = await linkPair()
    links.push(owners)
    answer(owners, database, `worker-${index}`, announce)
    nodes.push(await workerOf(workers, path, index, count))
  }
  const lent = async (): Promise<number> => {
    const { states } = (await database.bank('nobody', [
      'apply',
      [JSON.stringify([`t:${tokenId}`, `u:${userId}`])],
      [],
    ])) as BankStatement
    return states.reduce((sum, { remain, free }) => sum + remain - free, 0)
  }
  return { store, userId, tokenId, nodes, lent }
}

function answer(link: Link, database: OwnedDatabase, name: string, announce: (text: string) => void): void {
  link.answer('batch', (batch: Parameters<OwnedDatabase['write']>[1]) => database.write(name, batch))
  link.answer('bank', (request: BankRequest) => database.bank(name, request))
  link.on('announce', announce)
}

async function workerOf(link: Link, path: string, index: number, planned: number): Promise<LedgerNode> {
  const announcer = new OwnerAnnouncer(link)
  const opened = await openWorkerLedger({
    path,
    secrets: SECRETS,
    name: `worker-${index}`,
    workers: { link, announcer, index, planned, count: () => planned, isComplete: () => true },
  })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= opened.close().then(() => link.close()))
  onTestFinished(close)
  const { ledger, store } = opened
  const accounts = ledger.accounts as LeasedAccounts
  return { ledger, accounts, bankClient: opened.bankClient, store, close }
}

/** Both ends of a local socket. */
async function linkPair(): Promise<readonly [Link, Link]> {
  const server = createServer()
  const path = join(temporaryFolder(), 'link.sock')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const connecting = new Socket().connect(path)
  const pair = [new Link(await accepted), new Link(connecting)] as const
  server.close()
  return pair
}
