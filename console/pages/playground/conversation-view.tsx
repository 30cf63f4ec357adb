import { Button } from '@mantine/core'
import { IconArrowDown } from '@tabler/icons-react'
import { useTexts } from '../../locales/use-texts.tsx'
import type { Exchange, ModelAndProtocol, ToolResult } from './answer.ts'
import { Comparison } from './comparison.tsx'
import { ExchangeView } from './exchange-view.tsx'
import classes from './playground-page.module.css'
import type { ScrollFollowing } from './use-scroll-following.ts'

/** The conversation, in a region that stays scrolled to its end while answers arrive. */
export function ConversationView({
  exchanges,
  isRunning,
  following: { list, content, isAway, onScroll, follow },
  onResults,
}: {
  readonly exchanges: readonly Exchange[]
  readonly isRunning: boolean
  readonly following: ScrollFollowing
  readonly onResults: (results: readonly ToolResult[], target: ModelAndProtocol) => void
}) {
  const { playground } = useTexts()
  const last = exchanges.at(-1)
  return (
    <div className={classes['window']}>
      <div
        ref={list}
        role="log"
        aria-label={playground.conversation}
        className={classes['log']}
        tabIndex={0}
        onScroll={onScroll}
      >
        <div ref={content}>
          {exchanges.length === 0 && <p className={classes['hint']}>{playground.empty}</p>}
          {exchanges.map((exchange) => (
            <ExchangeView
              key={exchange.id}
              exchange={exchange}
              isLast={exchange === last && !isRunning}
              onResults={onResults}
            />
          ))}
          {last && last.answers.length > 1 && <Comparison answers={last.answers} />}
        </div>
      </div>
      {isAway && (
        <Button
          variant="default"
          className={classes['newest'] ?? ''}
          leftSection={<IconArrowDown size={14} aria-hidden />}
          onClick={follow}
        >
          {playground.newest}
        </Button>
      )}
    </div>
  )
}
