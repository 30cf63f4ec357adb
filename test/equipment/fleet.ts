import { type GatewayOptions, type RunningGateway, startGateway } from './gateway.ts'

/** Several gateways on the same database, each with its own data folder and port. */
export interface Fleet {
  readonly nodes: readonly RunningGateway[]
  readonly urls: readonly string[]
  /** A node by its index. */
  node(index: number): RunningGateway
  /** Sends SIGTERM to all nodes at once; settles with their exit codes when the last one has ended. */
  stop(): Promise<(number | null)[]>
  /** Ends all nodes, and removes their folders. */
  discard(): Promise<void>
}

/** Starts this number of nodes at the same time. */
export async function startFleet(count: number, options: GatewayOptions): Promise<Fleet> {
  const starts = await Promise.allSettled(Array.from({ length: count }, () => startGateway(options)))
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  const discard = async (): Promise<void> => void (await Promise.all(nodes.map((node) => node.discard())))
  const failed = starts.find((start) => start.status === 'rejected')
  if (failed) {
    await discard()
    throw failed.reason
  }
  return {
    nodes,
    urls: nodes.map(({ url }) => url),
    node(index) {
      const node = nodes[index]
      if (!node) throw new Error(`there is no node ${index}`)
      return node
    },
    stop: () => Promise.all(nodes.map((node) => node.stop())),
    discard,
  }
}
