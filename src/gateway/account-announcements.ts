import type { BankClient } from '../accounts/ledger/bank-client.ts'
import type { LeasedAccounts } from '../accounts/ledger/leased-accounts.ts'
import type { AccountName } from '../store/bank.ts'

/** Announcement that a node has started or stopped. */
export const NODES_CHANGED = 'nodes'

/**
 * Handles an announcement of another node. `account u:3`: that account was changed. `recall t:5 NODE`: that
 * node needs the unused leases of that account. `nodes`: a node has started or stopped. Announcements are not
 * trusted: this node asks the bank, at most fifty times a second.
 */
export function handleAnnouncement(
  text: string,
  to: {
    readonly accounts: LeasedAccounts
    readonly bankClient: BankClient
    readonly node: string
    readonly onNodesChanged: () => void
  },
): void {
  if (text === NODES_CHANGED) to.onNodesChanged()
  const [, kind, account, node] = /^(account|recall) ([ut]:\d{1,16}|b:[^ ]+)(?: (\S+))?$/.exec(text) ?? []
  if (kind === 'account') to.accounts.onChanged(account as AccountName)
  if (kind === 'recall' && node !== to.node) to.bankClient.leases.requestRecall(account as AccountName)
  if (kind !== undefined || text === NODES_CHANGED) to.bankClient.ask()
}
