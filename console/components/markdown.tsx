import type { Token, Tokens } from 'marked'
import { createElement, Fragment, type ReactNode, useMemo } from 'react'
import { markdownTokens } from './markdown-tokens.ts'
import classes from './markdown.module.css'

/** Schemes of links that can be opened; others are shown as text. */
const OPENED = /^(?:https?|mailto):/i

/** Pictures whose bytes are in the text. SVG is left out, because it may refer to other files. */
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,/i

/**
 * Renders Markdown as React elements, so that no text becomes HTML. HTML in the text is shown as text. A picture
 * is shown if the text has its bytes; one at another address is a link to it, because showing it would tell
 * that address who reads. A text that is too much to be read as Markdown is shown as it is.
 */
export function Markdown({ text }: { readonly text: string }) {
  const shown = useMemo(() => {
    const tokens = markdownTokens(text)
    return tokens ? blocks(tokens) : <div className={classes['plain']}>{text}</div>
  }, [text])
  return <div className={classes['markdown']}>{shown}</div>
}

function blocks(tokens: readonly Token[] | undefined): ReactNode {
  return (tokens ?? []).map((token, place) => <Fragment key={place}>{element(token)}</Fragment>)
}

const ELEMENTS: Readonly<Record<string, (token: never) => ReactNode>> = {
  space: () => null,
  def: () => null,
  hr: () => <hr />,
  br: () => <br />,
  paragraph: ({ tokens }: Tokens.Paragraph) => <p>{blocks(tokens)}</p>,
  blockquote: ({ tokens }: Tokens.Blockquote) => <blockquote>{blocks(tokens)}</blockquote>,
  // Headings of the text are rendered two levels lower, because the page has headings above them.
  heading: ({ tokens, depth }: Tokens.Heading) =>
    createElement(`h${Math.min(6, depth + 2)}`, undefined, blocks(tokens)),
  strong: ({ tokens }: Tokens.Strong) => <strong>{blocks(tokens)}</strong>,
  em: ({ tokens }: Tokens.Em) => <em>{blocks(tokens)}</em>,
  del: ({ tokens }: Tokens.Del) => <del>{blocks(tokens)}</del>,
  codespan: ({ text }: Tokens.Codespan) => <code>{text}</code>,
  code: ({ text }: Tokens.Code) => (
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
  ),
  list: ({ ordered, start, items }: Tokens.List) => {
    const rows = items.map((item, place) => <li key={place}>{blocks(item.tokens)}</li>)
    return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>
  },
  table: ({ header, rows }: Tokens.Table) => (
    <table>
      <thead>
        <tr>
          {header.map(({ tokens }, place) => (
            <th key={place}>{blocks(tokens)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells, row) => (
          <tr key={row}>
            {cells.map(({ tokens }, place) => (
              <td key={place}>{blocks(tokens)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  ),
  link: ({ href, tokens }: Tokens.Link) => linkTo(href, blocks(tokens)),
  image: ({ href, text }: Tokens.Image) =>
    isPicture(href) ? <img src={href} alt={text} /> : linkTo(href, text || href),
  text: (token: Tokens.Text) => (token.tokens ? blocks(token.tokens) : token.text),
  escape: ({ text }: Tokens.Escape) => text,
}

function element(token: Token): ReactNode {
  const make = ELEMENTS[token.type] as ((token: Token) => ReactNode) | undefined
  return make ? make(token) : token.raw
}

/** Whether a URL contains the bytes of a picture that is shown. */
export function isPicture(url: string): boolean {
  return PICTURE.test(url)
}

function linkTo(href: string, shown: ReactNode): ReactNode {
  if (!OPENED.test(href)) return shown
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {shown}
    </a>
  )
}
