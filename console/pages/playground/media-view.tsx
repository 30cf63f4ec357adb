import { useTexts } from '../../locales/use-texts.tsx'
import { useFormatters } from '../../components/session.tsx'
import type { Content } from './answer.ts'
import classes from './exchange-view.module.css'

/** Pictures, speech and embeddings of an answer. */
export function MediaView({ content: { pictures = [], audio, vectors } }: { readonly content: Content }) {
  const { playground } = useTexts()
  const { count } = useFormatters()
  return (
    <>
      {pictures.map((url, place) =>
        url.startsWith('data:') ? (
          <img key={place} className={classes['picture']} src={url} alt={playground.imageOf(place + 1)} />
        ) : (
          <p key={place}>
            <a href={url} target="_blank" rel="noreferrer noopener">
              {playground.imageElsewhere}
            </a>
          </p>
        ),
      )}
      {audio !== undefined && (
        <audio className={classes['audio']} controls src={audio} aria-label={playground.spoken} />
      )}
      {vectors && (
        <dl className={classes['vectors']}>
          <div>
            <dt>{playground.dimensions}</dt>
            <dd>{count(vectors.dimensions)}</dd>
          </div>
          {vectors.cosines.map(({ texts: [one, other], cosine }) => (
            <div key={`${one} ${other}`}>
              <dt>{playground.cosineOf(one, other)}</dt>
              <dd>{cosine.toFixed(4)}</dd>
            </div>
          ))}
        </dl>
      )}
    </>
  )
}
