import type { Ledger } from '../ledger/ledger.ts'
import type { Link } from '../link/link.ts'
import type { SettledCall } from '../store/ledger-writes.ts'

type SettledCalls = Pick<Ledger, 'onSettled'>

/** The calls that all workers settle. Those of others come through the owner, while somebody asks. */
export function settledByAll(ledger: SettledCalls, link: Link): SettledCalls {
  let listener: SettledCalls['onSettled']
  let isFollowed = false
  const follow = (): void => {
    ledger.onSettled = listener || isFollowed ? onSettled : undefined
  }
  const onSettled = (call: SettledCall): void => {
    listener?.(call)
    if (isFollowed) link.send('settled', call)
  }
  link.on('followed', (now: boolean) => {
    isFollowed = now
    follow()
  })
  link.on('settled', (call: SettledCall) => listener?.(call))
  return {
    get onSettled() {
      return listener
    },
    set onSettled(next) {
      listener = next
      link.send('follow', next !== undefined)
      follow()
    },
  }
}
