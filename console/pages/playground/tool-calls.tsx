import { Button, Textarea } from '@mantine/core'
import { useState } from 'react'
import { useTexts } from '../../locales/use-texts.tsx'
import type { ToolCall, ToolResult } from './answer.ts'
import classes from './exchange-view.module.css'

/** The tool calls of a model, and the fields for their results. */
export function ToolCalls({
  calls,
  onResults,
}: {
  readonly calls: readonly ToolCall[]
  readonly onResults: ((results: readonly ToolResult[]) => void) | undefined
}) {
  const { playground } = useTexts()
  const [texts, setTexts] = useState<Readonly<Record<number, string>>>({})
  return (
    <div className={classes['calls']}>
      {calls.map(({ id, name, input }, place) => (
        <div key={id || place}>
          <h3>{playground.toolCall(name)}</h3>
          <pre tabIndex={0}>{input}</pre>
          {onResults && (
            <Textarea
              label={playground.resultOf(name)}
              autosize
              minRows={1}
              maxRows={8}
              spellCheck={false}
              value={texts[place] ?? ''}
              onChange={({ currentTarget: { value } }) => setTexts({ ...texts, [place]: value })}
            />
          )}
        </div>
      ))}
      {onResults && (
        <Button
          variant="default"
          disabled={calls.some((_, place) => (texts[place] ?? '').trim() === '')}
          onClick={() => onResults(calls.map(({ id }, place) => ({ id, text: texts[place] ?? '' })))}
        >
          {playground.sendResults}
        </Button>
      )}
    </div>
  )
}
