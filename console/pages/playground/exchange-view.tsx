import { Link } from '@tanstack/react-router'
import { useTexts } from '../../locales/use-texts.tsx'
import { ErrorAlert } from '../../components/error-alert.tsx'
import { Markdown } from '../../components/markdown.tsx'
import {
  type Answer,
  type Exchange,
  isConversationProtocol,
  type Question,
  type ModelAndProtocol,
  type ToolResult,
} from './answer.ts'
import { AnswerFooter } from './answer-footer.tsx'
import classes from './exchange-view.module.css'
import { MediaView } from './media-view.tsx'
import { ToolCalls } from './tool-calls.tsx'

/** A question and its responses, side by side where several models or protocols were called. */
export function ExchangeView({
  exchange,
  isLast,
  onResults,
}: {
  readonly exchange: Exchange
  /** Whether this is the last question, so that results of its tool calls can still be sent. */
  readonly isLast: boolean
  readonly onResults: (results: readonly ToolResult[], target: ModelAndProtocol) => void
}) {
  return (
    <article className={classes['exchange']}>
      <QuestionView question={exchange.question} />
      <div className={classes['answers']}>
        {exchange.answers.map((answer) => (
          <AnswerView
            key={`${answer.model} ${answer.protocol}`}
            answer={answer}
            onResults={isLast ? (results) => onResults(results, answer) : undefined}
          />
        ))}
      </div>
    </article>
  )
}

function QuestionView({ question: { text, images, results } }: { readonly question: Question }) {
  const { playground } = useTexts()
  return (
    <div className={classes['question']}>
      <h2>{results.length > 0 ? playground.toolResults : playground.you}</h2>
      {results.map(({ id, text: result }) => (
        <pre key={id} tabIndex={0}>
          {result}
        </pre>
      ))}
      {text !== '' && <p>{text}</p>}
      {images.map((url, place) => (
        <img key={place} src={url} alt={playground.imageOf(place + 1)} />
      ))}
    </div>
  )
}

function AnswerView({
  answer,
  onResults,
}: {
  readonly answer: Answer
  readonly onResults: ((results: readonly ToolResult[]) => void) | undefined
}) {
  const { playground } = useTexts()
  const { content, state } = answer
  return (
    <section aria-label={playground.answerOf(answer.model, playground.protocols[answer.protocol])}>
      <h2>
        {answer.model}
        <span>{playground.protocols[answer.protocol]}</span>
      </h2>
      {content.thinking !== '' && (
        <details className={classes['thinking']}>
          <summary>{playground.thought}</summary>
          <p>{content.thinking}</p>
        </details>
      )}
      {content.text !== '' && <Markdown text={content.text} />}
      <MediaView content={content} />
      {state === 'running' && content.text === '' && (
        <p className={classes['waiting']}>
          {isConversationProtocol(answer.protocol) ? playground.waiting : playground.waitingForResult}
        </p>
      )}
      {content.calls.length > 0 && (
        <ToolCalls calls={content.calls} onResults={state === 'done' ? onResults : undefined} />
      )}
      <AnswerProblem answer={answer} />
      {state === 'stopped' && <p className={classes['waiting']}>{playground.stopped}</p>}
      {state !== 'running' && <AnswerFooter answer={answer} />}
    </section>
  )
}

function AnswerProblem({ answer: { keyId, content, refused } }: { readonly answer: Answer }) {
  const { playground } = useTexts()
  const message = refused?.message ?? content.error
  if (message === undefined) return null
  return (
    <ErrorAlert text={message}>
      {refused?.code.includes('quota') === true && (
        <p>
          <Link to="/keys/$id" params={{ id: String(keyId) }}>
            {playground.openKey}
          </Link>
        </p>
      )}
    </ErrorAlert>
  )
}
