import type { ContentCapture } from '../../content/content-capture.ts'
import type { Call } from '../../relay/call.ts'
import { type ContentReceivers, planContentCapture } from '../../relay/capture-content.ts'
import type { CallFeature } from '../../relay/life-cycle.ts'

/** The content of one call, which is collected as soon as quota is reserved. */
class CapturedContent {
  call: Call | undefined
  capture: ContentCapture | undefined
  /** Begins to collect. */
  start: (() => ContentCapture) | undefined

  /** Name of the group that served the call, once the call is over. */
  get group(): string {
    return this.call?.plan.group.name ?? ''
  }
}

/** Keeps what was said in calls: `docs/api.md: Content log`. */
export function contentLog(receivers: ContentReceivers): CallFeature<CapturedContent> {
  return {
    begin({ incoming, caller, settings, request, received, plans }) {
      if (request.isFree || !received) return undefined
      let content: CapturedContent | undefined
      const start = planContentCapture(receivers, {
        id: incoming.id,
        caller,
        settings,
        response: incoming.response,
        body: received,
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
    attempted: ({ capture }) => capture?.beginAttempt(),
    received: ({ capture }, _, chunk) => capture?.answerReceived(chunk),
    settled({ capture }, _, end) {
      end.awaitsContent = capture?.isAwaited === true
    },
    closed: ({ capture }) => capture?.relayed(),
  }
}
