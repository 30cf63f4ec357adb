import { healthOfThisNode } from '../management/channels/channel-health.ts'
import { answerGuardFigureRequests } from '../management/guards/guards.ts'
import type { AdministrationServices } from '../management/services.ts'
import { answerRunningCallRequests } from '../management/usage/running-calls.ts'

/** Answers what other nodes ask about this one; does nothing if there can be none. */
export function answerNodes(management: AdministrationServices): void {
  const { otherNodes } = management
  if (!otherNodes) return
  answerGuardFigureRequests(otherNodes, management)
  otherNodes.answerWith(async () => JSON.stringify(await healthOfThisNode(management)))
  answerRunningCallRequests(otherNodes, management)
}
