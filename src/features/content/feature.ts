import type { Caller } from '../../accounts/authentication/caller.ts'
import type { ContentCapture } from '../../content/content-capture.ts'
import type { RunningCall } from '../../call/running-call.ts'
import { type ContentReceivers, planContentCapture } from './capture-content.ts'
import { contentLevelOf } from '../../domain/content-log.ts'
import type { Settings } from '../../domain/settings.ts'
import type { CallFeature } from '../../call/feature.ts'
import type { Plans } from '../../call/plan.ts'

/** The content of one call, which is collected as soon as quota is reserved. */
class CapturedContent {
  call: RunningCall | undefined
  capture: ContentCapture | undefined
  /** Begins to collect. */
  start: (() => ContentCapture) | undefined

  /** Name of the group that served the call, once the call is over. */
  get group(): string {
    return this.call?.plan.group.name ?? ''
  }
}

/** Logs the content of calls: `docs/api.md: Content log`. */
export function contentLog(receivers: ContentReceivers): CallFeature<CapturedContent> {
  return {
    begin({ incoming, caller, settings, request, received, plans }) {
      if (request.charging === 'free' || !received || !mayLog(plans, settings, caller)) return undefined
      let content: CapturedContent | undefined
      const start = planContentCapture(receivers, {
        id: incoming.id,
        caller,
        settings,
        response: incoming.response,
        body: received,
        turn: incoming.turn,
        groups: plans.map(({ group }) => group.name),
        servedBy: () => content?.group ?? '',
      })
      if (!start) return undefined
      content = new CapturedContent()
      content.start = start
      return content
    },
    admitted(content, call) {
      content.call = call
      content.capture = content.start?.()
    },
    adapted: ({ capture }, _, request) => (capture ? { ...request, onBody: capture.onBody } : request),
    attempted({ capture }) {
      if (!capture) return undefined
      capture.beginAttempt()
      return { received: (chunk) => capture.answerReceived(chunk) }
    },
    settled({ capture }, _, end) {
      end.awaitsContent = capture?.isAwaited === true
    },
    closed: ({ capture }) => capture?.relayed(),
    repeated({ caller, settings, routes, body, received = body }, { id, response, turn }) {
      const group = routes.resolutions[0]?.group.name ?? ''
      const capture = planContentCapture(receivers, {
        id,
        caller,
        settings,
        response,
        body: received,
        turn,
        groups: [group],
        servedBy: () => group,
      })?.()
      return (
        capture && {
          settled: (repeat) => void (repeat.awaitsContent = capture.isAwaited),
          ended: (isCharged) => (isCharged ? capture.relayed() : capture.forget()),
        }
      )
    },
  }
}

/** Whether the content of a call is logged in any of its groups, unless its token prevents that; allocates nothing. */
function mayLog(plans: Plans, { contentLog: general, groups }: Settings, { user }: Caller): boolean {
  for (let at = 0; at < plans.length; at++)
    if (contentLevelOf(general, groups.get(plans[at]?.group.name ?? '')?.contentLog, user) !== 'none')
      return true
  return false
}
